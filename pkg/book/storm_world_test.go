package book_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// noticePeriod is how long pods that are cut take to end.
const noticePeriod = 2 * time.Second

// storm is what a world has beside, in which Runs reserve and are cut: Reservations, as the API server has them and as the
// process has seen them, which is a while later.
type storm struct {
	*world
	kept   map[string]*rqv1.Reservation
	seen   map[string]*rqv1.Reservation
	under  []version // under way to the process, in order
	writes int
	// fuse is after how many writes the process dies; it does not below 0.
	fuse int
	// ends is when pods that were told to go are gone.
	ends map[types.UID]time.Time
	journal
}

// version is a Reservation as it was once, or that it is gone.
type version struct {
	*rqv1.Reservation
	gone bool
}

// died is what a process panics with that dies at a write.
type died struct{}

func newStorm(w *world) *storm {
	w.storm = &storm{world: w, kept: map[string]*rqv1.Reservation{}, seen: map[string]*rqv1.Reservation{}, fuse: -1,
		ends: map[types.UID]time.Time{}, journal: newJournal()}
	w.boot(false)
	return w.storm
}

// setKey gives a process the lottery's key.
func (s *storm) setKey(b *book.Book) {
	if s != nil {
		b.SetLotteryKey([]byte("0123456789abcdef0123456789abcdef"))
	}
}

// events tells a process that starts of the Reservations that there are.
func (s *storm) events(b *book.Book) []func() {
	if s == nil {
		return nil
	}
	var out []func()
	for _, name := range slices.Sorted(maps.Keys(s.kept)) {
		out = append(out, func() { b.SetReservation(s.kept[name]) })
	}
	return out
}

// write comes before every write to the API server: the process may die there.
func (s *storm) write() {
	if s == nil || s.fuse < 0 {
		return
	}
	if s.fuse--; s.fuse < 0 {
		panic(died{})
	}
}

// stored returns a Run as it comes back from the API server: times in whole seconds.
func (s *storm) stored(run *rqv1.Run) *rqv1.Run {
	if s == nil {
		return run
	}
	s.started(run)
	return roundTrip(run)
}

func roundTrip[T any](in *T) *T {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		panic(err)
	}
	return out
}

// refused is what follows when a pod's cycle found no node.
func (s *storm) refused(pod types.UID) {
	if s != nil && s.book.Assigned(pod) == "" {
		s.book.Promise(pod, s.now)
		s.judge()
	}
}

func (s *storm) seenOf(run string) []*rqv1.Reservation {
	var out []*rqv1.Reservation
	for _, name := range slices.Sorted(maps.Keys(s.seen)) {
		if s.seen[name].Spec.RunRef.Name == run {
			out = append(out, s.seen[name])
		}
	}
	return out
}

// put carries a write out, unless the process had not seen the latest version.
func (s *storm) put(w *lifecycle.Write) (*rqv1.Reservation, error) {
	s.write()
	r, was := roundTrip(w.Reservation), s.kept[w.Reservation.Name]
	switch {
	case w.Verb == lifecycle.Create && was != nil:
		s.book.SetReservation(was)
		return was, nil
	case w.Verb == lifecycle.Create:
		r.UID, r.CreationTimestamp, r.Status = s.uid(), metav1.NewTime(s.now.Truncate(time.Second)), rqv1.ReservationStatus{}
	case was == nil || was.ResourceVersion != r.ResourceVersion:
		return nil, errors.New("another version is stored")
	case w.Verb == lifecycle.Update:
		r.Status = *was.Status.DeepCopy()
	default:
		r.Spec = *was.Spec.DeepCopy()
	}
	s.writes++
	r.ResourceVersion = strconv.Itoa(s.writes)
	s.kept[r.Name] = r
	s.under = append(s.under, version{r, false})
	s.tell(was, r)
	s.book.SetReservation(r)
	return r, nil
}

// remove deletes a Reservation, as somebody may. Nobody knows any more what was done for it.
func (s *storm) remove(name string) {
	run := types.UID(s.kept[name].Labels[rqv1.LabelRunUID])
	delete(s.shielded, run)
	for i := range s.kept[name].Status.Cuts {
		delete(s.shielded, s.kept[name].Status.Cuts[i].UID)
	}
	for _, cutters := range s.cutters {
		delete(cutters, run)
	}
	s.under = append(s.under, version{s.kept[name], true})
	delete(s.kept, name)
}

// deliver has the process see the next version of a Reservation that is under way.
func (s *storm) deliver() {
	if len(s.under) == 0 {
		return
	}
	v := s.under[0]
	s.under = s.under[1:]
	if v.gone {
		delete(s.seen, v.Name)
		s.book.DeleteReservation(v.Reservation)
		return
	}
	s.seen[v.Name] = v.Reservation
	s.book.SetReservation(v.Reservation)
}

// giveNotice tells a pod that is cut to go; false for one that goes at once.
func (s *storm) giveNotice(d lifecycle.Deletion) bool {
	if s == nil || d.Notice == nil || d.Pod.Spec.NodeName == "" {
		return false
	}
	if pod := s.pods[d.Pod.UID]; pod != nil {
		s.endAt(pod, s.now.Add(time.Duration(d.Notice.GraceSeconds)*time.Second))
	}
	return true
}

// endAt tells a pod to go by an instant, or sooner than it was told before.
func (s *storm) endAt(pod *corev1.Pod, at time.Time) {
	if was := s.ends[pod.UID]; was.IsZero() || at.Before(was) {
		s.ends[pod.UID] = at
	}
	s.tellToGo(pod, at)
}

// end has pods go whose time is over.
func (s *storm) end() {
	for _, uid := range slices.Sorted(maps.Keys(s.ends)) {
		if !s.ends[uid].After(s.now) {
			delete(s.ends, uid)
			if pod := s.pods[uid]; pod != nil && !s.lost(pod.Spec.NodeName) {
				s.deletePod(uid)
			}
		}
	}
}

// step does something in which the process may die.
func (s *storm) step(do func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
			s.restart()
		}
	}()
	do()
}

// restart has another process begin where one died. What is decided is what was decided before.
func (s *storm) restart() {
	s.fuse, s.under, s.seen = -1, nil, maps.Clone(s.kept)
	before := s.undisclosed()
	s.crash()
	s.compare(before, s.undisclosed())
	s.judge()
}

// live returns the names of Runs that there are or that Reservations wait for.
func (s *storm) live() []string {
	names := s.names()
	for _, r := range s.kept {
		if run := r.Spec.RunRef.Name; !r.Ended() && !slices.Contains(names, run) {
			names = append(names, run)
		}
	}
	slices.Sort(names)
	return names
}

// work lets everybody work until nothing changes at this instant.
func (s *storm) work() {
	last := ""
	for range 100 {
		for len(s.under) > 0 {
			s.deliver()
		}
		for _, name := range s.live() {
			s.reconcile(name)
		}
		s.grow()
		s.book.Fill(s.now)
		s.act()
		s.book.Due(s.now)
		for _, uid := range s.sortedPods() {
			s.cycle(uid)
		}
		for _, uid := range slices.Sorted(maps.Keys(s.binding)) {
			s.bind(uid, written)
		}
		s.book.Refresh(s.now, 8)
		s.judge()
		s.end()
		s.check()
		now := fmt.Sprint(s.fingerprint(), s.writes, len(s.ends), s.dates(), s.refusals(), s.widths())
		if now == last && !s.queued() {
			return
		}
		last = now
	}
	s.t.Fatalf("the cluster does not come to rest:\n%s", s.story())
}

// dates tells when Runs are promised a start.
func (s *storm) dates() []time.Time {
	var out []time.Time
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		if p := s.book.Prospect(s.runs[name].UID).Promise; p != nil {
			out = append(out, p.At)
		}
	}
	return out
}

// queued reports whether a pod is about to be tried.
func (s *storm) queued() bool {
	s.act()
	for uid := range s.queue {
		if pod := s.pods[uid]; pod != nil && pod.Spec.NodeName == "" && s.book.Assigned(uid) == "" && s.book.Gate(pod) == "" {
			return true
		}
	}
	return false
}

// refusals tells which Runs are refused a start, and why.
func (s *storm) refusals() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		if refusal := s.book.Refusal(s.runs[name].UID); refusal != nil {
			out = append(out, name, string(refusal.Reason))
		}
	}
	return out
}

// widths tells how wide the Runs are, and are about to be.
func (s *storm) widths() []int32 {
	var out []int32
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		if w := s.runs[name].Status.Width; w != nil {
			out = append(out, w.Granted, w.Growing, s.book.Prospect(s.runs[name].UID).GrowTo)
		}
	}
	return out
}

// finish has the pods of a Run end well.
func (s *storm) finish(run string) {
	for _, uid := range s.sortedPods() {
		pod := s.pods[uid]
		if pod.Labels[rqv1.LabelRun] == run && pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) && pod.Status.Phase == corev1.PodRunning {
			s.endPod(uid, corev1.PodSucceeded)
		}
	}
}
