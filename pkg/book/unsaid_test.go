package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// mute has every status be too large to be stored from now on.
func (w *world) mute() {
	w.Faults.Add(sim.Fault{Of: sim.Statuses, Do: sim.TooLarge, Lasts: true})
}

// A Run whose status cannot be stored, as etcd takes no object of more than 1.5 MiB, holds its GPUs no longer than its
// maxDuration. If its status cannot say that it runs, it does not.
func TestARunWhoseStatusCannotBeStoredEnds(t *testing.T) {
	for name, before := range map[string]bool{"before it starts": true, "once it runs": false} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.setBudget("a", "org:a", 8)
				if before {
					w.mute()
				}
				w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, lasting(5*time.Minute))
				for range 20 {
					w.round()
				}
				w.mute()
				for range 10 {
					w.round()
					w.Pass(time.Minute)
				}
				w.EndPods()
				w.round()
				for _, l := range w.OpenLeases() {
					w.t.Fatalf("run0 (%s), which takes 5 minutes, still holds %s", w.Runs["run0"].Status.Phase, l.Name)
				}
			})
		})
	}
}

// A Run starts by itself once its status can be stored.
func TestARunWhoseStatusCouldNotBeStoredIsTriedAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.mute()
		w.submit("run0", "org:a", 1, 1, 8)
		for range 10 {
			w.round()
		}
		w.Faults.Drop(sim.TooLarge)
		w.Pass(6 * time.Minute)
		w.EndPods()
		for range 10 {
			w.round()
		}
		w.running("run0", "although its status can be stored by now")
	})
}

// A Run whose status cannot be stored is cut as anybody else.
func TestARunWhoseStatusCannotBeStoredIsCut(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 8)
		s.setBudget("b", "org:b", 8)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0)
		s.work()
		s.during(10 * time.Minute)
		s.submitWithSpares("run1", "org:b", 1, 1, 8, 0)
		s.work()
		s.mute()
		for range 60 {
			s.during(30 * time.Second)
			for s.Delivers() {
				s.Deliver()
			}
			s.round()
			s.Book.Due(s.Now)
			s.refresh()
			s.EndPods()
		}
		for _, l := range s.OpenLeases() {
			if l.Spec.RunRef.Name == "run0" {
				s.t.Fatalf("run0 (%s) still holds %s", s.Runs["run0"].Status.Phase, l.Name)
			}
		}
	})
}

// What is kept for a rank of such a Run is not waited for any longer than its pods, by a Run for which it is cut.
func TestWhatIsKeptForARunWhoseStatusCannotBeStoredIsNotWaitedFor(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.losesRank(noticePeriod)
		s.during(noticePeriod)
		s.decided("run1-r0")
		s.mute()
		s.fleet("d2", 2)
		for range 9 {
			s.during((noticePeriod + overstay) / 8)
			for s.Delivers() {
				s.Deliver()
			}
			s.round()
			s.Book.Due(s.Now)
			s.refresh()
			s.EndPods()
		}
		if on := s.Book.Assigned(s.pod("run1-0")); !strings.HasPrefix(on, "d2") {
			s.t.Fatalf("run1-0 has its place on %q, and waits for %d pods\n%s", on,
				s.Book.Prospect(s.Runs["run1"].UID).Leaving, s.story())
		}
	})
}

// A Run that leaves no room for its status gets no pods, and its status says why.
func TestARunThatIsTooLargeGetsNoPods(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		names := make([]string, 20000) // they go to /etc/hosts
		for i := range names {
			names[i] = strings.Repeat("a", 60)
		}
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(spec *rqv1.RunSpec) {
			spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				HostAliases: []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: names}}}}
		})
		for range 5 {
			w.round()
		}
		if n := len(w.Pods); n > 0 {
			w.t.Fatalf("it has %d pods", n)
		}
		if !strings.Contains(w.Runs["run0"].Status.Message, "because its status needs room") {
			w.t.Fatalf("its message is %q", w.Runs["run0"].Status.Message)
		}
	})
}
