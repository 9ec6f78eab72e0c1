package book_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// noticePeriod is how long pods that are cut take to end.
const noticePeriod = 2 * time.Second

// storm is what a world has beside, in which Runs reserve and are cut.
type storm struct {
	*world
	writes int  // of Reservations
	stills int  // how often nothing was left to do
	shifts bool // all Runs wait again whenever they have run for a short while
	journal
}

func newStorm(w *world) *storm {
	w.storm = &storm{world: w, journal: newJournal()}
	w.Reserves, w.AtOnce, w.Hasty = true, false, true
	w.Stored = w.storm.started
	w.Reserved = func(was, r *rqv1.Reservation) {
		w.storm.writes++
		w.storm.tell(was, r)
	}
	w.Boot(nil)
	return w.storm
}

// remove deletes a Reservation, as somebody may. Nobody knows any more what was done for it.
func (s *storm) remove(name string) {
	run := types.UID(s.Reservations[name].Labels[rqv1.LabelRunUID])
	delete(s.shielded, run)
	for i := range s.Reservations[name].Status.Cuts {
		delete(s.shielded, s.Reservations[name].Status.Cuts[i].UID)
	}
	for _, cutters := range s.cutters {
		delete(cutters, run)
	}
	s.ForgetReservation(name)
}

// step does something in which the process may die.
func (s *storm) step(do func()) {
	if s.Step(do) {
		s.restart()
	}
}

// restart has another process begin where one died. What is decided is what was decided before.
func (s *storm) restart() {
	s.Faults.Drop(sim.Crash)
	before := s.undisclosed()
	s.crash()
	s.compare(before, s.undisclosed())
	s.judge()
}

// work lets everybody work until nothing changes at this instant.
func (s *storm) work() {
	last := ""
	for range 100 {
		for s.Delivers() {
			s.Deliver()
		}
		s.control()
		for _, name := range s.Live() {
			s.reconcile(name)
		}
		s.grow()
		s.Book.Fill(s.Now)
		s.Act()
		s.Book.Due(s.Now)
		for _, uid := range s.SortedPods() {
			s.cycle(uid)
		}
		for _, uid := range s.Bindings() {
			s.Bind(uid, sim.Written)
		}
		s.refresh()
		s.EndPods()
		s.check()
		s.Book.Fill(s.Now) // nobody may be in the way of shards any more
		now := fmt.Sprint(s.fingerprint(), s.assigned(), s.writes, s.Ends.Len(), s.dates(), s.undated(), s.refusals(),
			s.widths(), s.Faults) // what was not written is yet to be
		if now == last && !s.queued() {
			if s.stills++; s.stills%16 == 0 {
				s.studied()
			}
			return
		}
		last = now
	}
	s.t.Fatalf("the cluster does not come to rest:\n%s", s.story())
}

// refresh works promises out again that may have changed, one at a time: what is decided by the next may take room that
// this one was decided by.
func (s *storm) refresh() { s.refreshAt(s.Now) }

func (s *storm) refreshAt(at time.Time) {
	for range 8 {
		s.Book.RefreshPromises(at)
		s.judge()
		if len(s.Book.Stale(at)) == 0 {
			return
		}
	}
}

// studied asserts that it is the same what Runs are promised by the book and by what is worked out beside it.
func (s *storm) studied() {
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		itself, beside := s.Book.Studies(s.Runs[name].UID, s.Now)
		if diff := cmp.Diff(itself, beside, cmp.AllowUnexported(topology.Amounts{})); diff != "" {
			s.t.Fatalf("%s is promised otherwise by what is worked out beside the book (-book +beside):\n%s", name, diff)
		}
	}
}

// assigned returns the pods that have nodes.
func (s *storm) assigned() []types.UID {
	return slices.DeleteFunc(s.SortedPods(), func(uid types.UID) bool { return s.Book.Assigned(uid) == "" })
}

// dates tells when Runs are promised a start.
func (s *storm) dates() []time.Time {
	var out []time.Time
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		if p := s.Book.Prospect(s.Runs[name].UID).Promise; p != nil {
			out = append(out, p.At)
		}
	}
	return out
}

// undated tells of which Runs it has not been worked out whether they have a date.
func (s *storm) undated() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Runs)), func(name string) bool {
		return !s.Book.Prospect(s.Runs[name].UID).Undated
	})
}

// queued reports whether a pod is about to be tried.
func (s *storm) queued() bool {
	s.Act()
	for uid := range s.Queue {
		if pod := s.Pods[uid]; pod != nil && pod.Spec.NodeName == "" && s.Book.Assigned(uid) == "" && s.Book.Gate(pod) == "" {
			return true
		}
	}
	return false
}

// refusals tells which Runs are refused a start, and why.
func (s *storm) refusals() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		if refusal := s.Book.Refusal(s.Runs[name].UID); refusal != nil {
			if refusal.Limit.Owed.Amount > 0 {
				s.tally["refused what is owed"]++
			}
			out = append(out, name, string(refusal.Reason))
		}
	}
	return out
}

// widths tells how wide the Runs are, and are about to be.
func (s *storm) widths() []int32 {
	var out []int32
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		if w := s.Runs[name].Status.Width; w != nil {
			out = append(out, w.Granted, w.Growing, s.Book.Prospect(s.Runs[name].UID).GrowTo)
		}
	}
	return out
}

// finish has the pods of a Run end well.
func (s *storm) finish(run string) {
	for _, uid := range s.SortedPods() {
		pod := s.Pods[uid]
		if pod.Labels[rqv1.LabelRun] == run && pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) &&
			pod.Status.Phase == corev1.PodRunning {
			s.EndPod(uid, corev1.PodSucceeded)
		}
	}
}
