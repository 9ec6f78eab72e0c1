package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// checkWidths asserts that every Run that runs has one of its widths (R16), that its pods are those of that width and
// no others, and that a Run which waits is granted nothing.
func (w *world) checkWidths() {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		run := w.Runs[name]
		if run.Status.Phase != rqv1.RunRunning {
			if run.Status.Width != nil && run.Status.Width.Granted > 0 {
				w.t.Fatalf("Run %s is %s and is granted %d GPUs", name, run.Status.Phase, run.Status.Width.Granted)
			}
			continue
		}
		if run.Spec.Opportunistic {
			continue
		}
		granted, most, least, step := run.Status.Width.Granted, run.Spec.Resources.TotalGPUs, run.Spec.Resources.TotalGPUs,
			int32(1)
		if m := run.Spec.Malleable; m != nil {
			least, step, most = m.MinTotalGPUs, m.StepGPUs, m.MaxTotalGPUs
			if m.DesiredTotalGPUs != nil {
				most = *m.DesiredTotalGPUs
			}
		}
		if granted < least || granted > most || (granted-least)%step != 0 || run.Status.Width.Growing != 0 {
			w.t.Fatalf("R16, R23: Run %s of %d..%d GPUs by %d has the width %+v", name, least, most, step, run.Status.Width)
		}
		groups := int32(1)
		if l := run.Spec.Locality; l != nil && l.GroupGPUs != nil {
			groups = granted / *l.GroupGPUs
		}
		size := run.Status.GPUsPerPod
		active, spares := w.countPods(name)
		active += w.fewer(run)
		if fixed := run.Spec.Resources.GPUsPerPod; size <= 0 || fixed != nil && *fixed != size {
			w.t.Fatalf("R14: the pods of Run %s have %d GPUs, and it asks for %v", name, size, fixed)
		}
		if active != granted/size || spares != groups*run.GroupSpares()/size {
			w.t.Fatalf("Run %s is granted %d GPUs and has %d pods and %d spares:\n%s", name, granted, active, spares,
				w.describe(name))
		}
	}
}

// countPods returns how many active pods and how many spares of a Run there are.
func (w *world) countPods(run string) (active, spares int32) {
	for _, pod := range w.Pods {
		switch {
		case pod.Labels[rqv1.LabelRun] != run:
		case pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare):
			spares++
		default:
			active++
		}
	}
	return active, spares
}

// granted asserts the width that a Run started at.
func (w *world) granted(run string, gpus int32) {
	w.running(run, "although a width of it fits")
	if got := w.Runs[run].Status.Width; got.Granted != gpus || got.Allocated != gpus {
		w.t.Fatalf("%s is granted %d GPUs and has %d, want %d", run, got.Granted, got.Allocated, gpus)
	}
	w.checkSettled()
}

func TestTheWidestThatFitsIsStarted(t *testing.T) {
	const grouped = false
	for name, test := range map[string]struct {
		nodes, budget        int
		without              bool
		pods, least, step    int
		spares, gpusPerGroup int
		want                 int32
	}{
		"all of it":                   {4, 64, grouped, 4, 2, 1, 0, 8, 32},
		"as the room allows":          {3, 64, grouped, 4, 2, 1, 0, 8, 24},
		"as the money allows":         {4, 20, grouped, 4, 1, 1, 0, 8, 16},
		"on a step":                   {4, 31, grouped, 4, 2, 2, 0, 8, 16},
		"down to the least":           {2, 64, grouped, 4, 2, 1, 0, 8, 16},
		"without groups":              {3, 64, true, 4, 2, 1, 0, 8, 24},
		"with spares for fewer":       {4, 64, grouped, 4, 1, 1, 1, 8, 16},
		"with the spares of one":      {3, 64, true, 4, 2, 1, 1, 8, 16},
		"many groups, many nodes":     {13, 512, grouped, 16, 2, 1, 0, 8, 104},
		"steps that skip what's free": {15, 512, grouped, 16, 4, 4, 0, 8, 96},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				for i := range test.nodes {
					w.addNode(fmt.Sprintf("n%02d", i), "d0")
				}
				w.setBudget("a", "org:a", test.budget)
				changes := []func(*rqv1.RunSpec){elastic(test.least, test.step)}
				if test.without {
					changes = append(changes, ungrouped)
				}
				w.submitWithSpares("run0", "org:a", test.pods, 1, test.gpusPerGroup, test.spares, changes...)
				w.settle()
				w.granted("run0", test.want)
			})
		})
	}
}

// What is refused is the least width, and room for that alone wakes the Run.
func TestARunWaitsForItsLeastWidth(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 4, 1, 8, 0, elastic(2, 1))
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.running("run1", "although it fits")
		w.addNode("n1", "d0")
		w.settle()
		if refusal := w.Book.Refusal(w.Runs["run0"].UID); refusal == nil || refusal.WantedGPUs != 16 ||
			refusal.ShortGPUs != 8 {
			w.t.Fatalf("the refusal is %+v, want that of 16 GPUs", refusal)
		}
		w.Act()
		w.addNode("n2", "d0")
		woken := w.Book.TakeActions().Activate
		if len(woken) != 1 || woken[0].Name != "run0-0" {
			w.t.Fatalf("%d pods are woken, want the leader of run0", len(woken))
		}
		w.Queue[woken[0].UID] = true
		w.settle()
		w.granted("run0", 16)
	})
}

// occupied adds a node that another Run fills: a gang has pods for it, and starts without it.
func (w *world) occupied(name, domain string) {
	w.addNode(name, domain)
	w.setBudget("other", "org:other", 8)
	w.submit("other", "org:other", 1, 1, 8)
	w.settle()
}

func TestSurplusPodsTakeNoPart(t *testing.T) {
	tell(t, func(w *world) {
		for _, node := range []string{"n0", "n1", "n2"} {
			w.addNode(node, "d0")
		}
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(1, 1))
		w.reconcile("run0")
		w.place("run0-0")
		w.reconcile("run0")
		w.RemoveNode("n2") // it has its pods by now, and is planned anew
		w.Act()
		w.place("run0-0")
		surplus := w.pod("run0-2")
		if why := w.Book.Gate(w.Pods[surplus]); why != "beyond the width that the Run starts at" {
			w.t.Fatalf("the surplus pod is gated by %q", why)
		}
		if node, refusal := w.Book.Place(surplus, w.Now); refusal == nil {
			w.t.Fatalf("the surplus pod is placed on %q", node)
		}
		w.DeletePod(surplus) // which breaks no plan
		w.reconcile("run0")
		if active, _ := w.countPods("run0"); active != 2 {
			w.t.Fatalf("there are %d pods, want no new surplus one", active)
		}
		w.place("run0-1")
		w.settle()
		w.granted("run0", 16)
	})
}

// A plan that is given up is made anew at any width, and pods that were surplus are members again.
func TestAPlanThatIsUnwoundAsksForTheTotalAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.occupied("full", "d0")
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(1, 1))
		w.reconcile("run0")
		w.place("run0-0")
		w.reconcile("run0")
		w.addNode("n2", "d0")
		w.Pass(2 * gangDeadline) // the others never come to the barrier
		w.settle()
		w.granted("run0", 24)
	})
}

// What a narrower Run lost is replaced at the width that it has, also after a restart and although there is more room.
func TestALostPodOfANarrowRunIsReplaced(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(2, 1))
		w.settle()
		w.granted("run0", 16)
		w.desire("run0", 16)
		w.addNode("n2", "d0")
		w.crash()
		w.DeletePod(w.pod("run0-1"))
		w.settle()
		w.granted("run0", 16)
	})
}

// activating is a Reservation that does this to a Run.
func (w *world) activating(cut rqv1.Cut) *rqv1.Reservation {
	run, at := w.Runs[cut.Run.Name], metav1.NewMicroTime(w.Now)
	cut.Run.Namespace, cut.UID = run.Namespace, run.UID
	return &rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other-r0", UID: w.UID()},
		Spec:       rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "other"}},
		Status:     rqv1.ReservationStatus{State: rqv1.ReservationActivating, ActivatedAt: &at, Cuts: []rqv1.Cut{cut}},
	}
}

func TestARunThatIsShrunkGivesItsRoomToOthers(t *testing.T) {
	tell(t, func(w *world) {
		for _, node := range []string{"n0", "n1", "n2"} {
			w.addNode(node, "d0")
		}
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(1, 1))
		w.settle()
		w.granted("run0", 24)
		w.submit("run1", "org:a", 2, 1, 8)
		w.Pass(time.Minute)
		width := int32(8)
		w.Book.SetReservation(w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutShrink, GPUs: 16,
			Width: &width}))
		w.settle()
		w.granted("run0", 8)
		w.granted("run1", 16)
		for _, lease := range w.Leases {
			if lease.Status.Closed && lease.Status.ClosureReason != rqv1.ClosedShrink {
				w.t.Fatalf("Lease %s is closed as %s", lease.Name, lease.Status.ClosureReason)
			}
		}
		w.crash()
		w.settle()
		w.granted("run0", 8)
	})
}

// A Run that has grown beyond its total waits at its total once it is cut. All of its pods go, also where the process
// dies when some have been told, and where the Reservation is over by then.
func TestAllPodsGoOfARunThatIsCutWhenItHasGrown(t *testing.T) {
	for _, over := range []bool{false, true} {
		for told := range 4 {
			tell(t, func(w *world) {
				w.fleet("d0", 4)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(1, 1), upTo(2), checkpointed)
				w.settle()
				w.granted("run0", 32)
				w.setBudget("a", "org:a", 0) // it does not start again
				r := w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutLottery, GPUs: 32})
				w.Book.SetReservation(r)
				if !over {
					w.activation = r
				}
				w.dies(told, sim.Deletions)
				w.settle()
				if open := w.OpenLeases(); len(open) > 0 {
					w.t.Fatalf("%d told, Reservation over: %v: %d Leases stay open", told, over, len(open))
				}
				w.checkSettled()
			})
		}
	}
}

// Pods that are cut are outstanding until they are gone, also once their Run's status no longer grants them.
func TestWhatIsCutIsOutstandingUntilItIsGone(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(1, 1))
		w.settle()
		w.Pass(time.Minute)
		width := int32(8)
		r := w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutShrink, GPUs: 16, Width: &width})
		w.Book.SetReservation(r)
		w.reconcile("run0")
		if granted := w.Runs["run0"].Status.Width.Granted; granted != 8 || !w.Book.Awaited(r) {
			w.t.Fatalf("%d GPUs are granted, and nothing is outstanding", granted)
		}
		w.reconcile("run0")
		w.reconcile("run0")
		if w.Book.Awaited(r) {
			w.t.Fatalf("something is outstanding although all pods are gone")
		}
	})
}

func TestCutsAreThoseOfReservationsThatActivate(t *testing.T) {
	tell(t, func(w *world) {
		w.submit("run0", "org:a", 1, 1, 8)
		run := w.Runs["run0"]
		r := w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutLottery, GPUs: 8})
		told := func(why string, times int, cuts ...rank.Cut) {
			if diff := cmp.Diff(cuts, w.Book.CutsOf(run.UID)); diff != "" {
				w.t.Fatalf("cuts of %s (-want +got):\n%s", why, diff)
			}
			want := slices.Repeat([]types.NamespacedName{{Namespace: "ns", Name: "run0"}}, times)
			if diff := cmp.Diff(want, w.Book.TakeActions().Reconcile, cmp.Comparer(func(x, y []types.NamespacedName) bool {
				return slices.Equal(x, y)
			})); diff != "" {
				w.t.Fatalf("Runs that %s concerns (-want +got):\n%s", why, diff)
			}
		}
		w.Book.TakeActions()
		pending := r.DeepCopy()
		pending.Status.State = rqv1.ReservationPending
		w.Book.SetReservation(pending)
		told("a Reservation that waits", 0)
		want := rank.Cut{Cut: r.Status.Cuts[0], Reservation: types.NamespacedName{Namespace: "ns", Name: "other-r0"},
			For: types.NamespacedName{Namespace: "ns", Name: "other"}, At: w.Now}
		w.Book.SetReservation(r)
		told("one that activates", 1, want)
		w.Book.SetReservation(r.DeepCopy())
		told("one that has not changed", 0, want)
		older := r.DeepCopy()
		older.Name, older.UID = "another-r0", w.UID()
		earlier := metav1.NewMicroTime(w.Now.Add(-time.Second))
		older.Status.ActivatedAt = &earlier
		first := want
		first.Reservation.Name, first.At = "another-r0", earlier.Time
		w.Book.SetReservation(older)
		told("an older one", 1, first, want)
		w.Book.DeleteReservation(older)
		told("one that is gone", 1, want)
		released := r.DeepCopy()
		released.Status.State = rqv1.ReservationReleased
		w.Book.SetReservation(released)
		told("one that has ended", 1)
	})
}
