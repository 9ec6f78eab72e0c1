package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// upTo lets a Run grow by so many steps beyond its total.
func upTo(steps int) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) { s.Malleable.MaxTotalGPUs += int32(steps) * s.Malleable.StepGPUs }
}

// elasticAny has a Run that is made of so many parts, each of so many pods, be malleable in a random way.
func elasticAny(t *rapid.T, parts, part int) []func(*rqv1.RunSpec) {
	step := rapid.IntRange(1, parts).Draw(t, "step")
	least := parts - step*rapid.IntRange(0, (parts-1)/step).Draw(t, "steps")
	return []func(*rqv1.RunSpec){elastic(least*part, step*part),
		upTo(rapid.IntRange(0, 3).Draw(t, "steps above the total"))}
}

// desire edits the width that a Run tends to.
func (w *world) desire(name string, gpus int32) {
	run := w.Runs[name].DeepCopy()
	run.Generation++
	run.Spec.Malleable.DesiredTotalGPUs = &gpus
	w.SetRun(run)
}

// desireAny does so in a random way.
func (w *world) desireAny(t *rapid.T) {
	var elastic []string
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		if w.Runs[name].Spec.Malleable != nil {
			elastic = append(elastic, name)
		}
	}
	if name, ok := pick(t, "elastic Run", elastic); ok {
		m := w.Runs[name].Spec.Malleable
		w.desire(name, m.MinTotalGPUs+m.StepGPUs*rapid.Int32Range(0, (m.MaxTotalGPUs-m.MinTotalGPUs)/m.StepGPUs).Draw(t,
			"steps desired"))
	}
}

// growths tells how wide Runs are, how wide they may grow, and how full nodes are, for failures.
func (w *world) growths() (out string) {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		run := w.Runs[name]
		out += fmt.Sprintf("%s %s %+v grows to %d of %+v locality %v;\n", name, run.Status.Phase, run.Status.Width,
			w.Book.Prospect(run.UID).GrowTo, run.Spec.Malleable, run.Spec.Locality)
	}
	for _, node := range slices.Sorted(maps.Keys(w.Nodes)) {
		out += fmt.Sprintf("%s %d of %d;", node, w.heldOn(node), w.sizeOf(node))
	}
	return out
}

// grow has the book decide who grows, and asserts that there are room and money for all of them together.
func (w *world) grow() {
	w.Book.Lapse(w.Now)
	w.Book.GrowRuns(w.Now)
	gpus, money := 0, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		run := w.Runs[name]
		to := w.Book.Prospect(run.UID).GrowTo
		if to == 0 {
			continue
		}
		by := to - run.Status.Width.Granted
		if m := run.Spec.Malleable; by != m.StepGPUs || to > m.MaxTotalGPUs || run.Status.Width.Growing != 0 {
			w.t.Fatalf("R23: %s with the width %+v is let grow to %d", name, run.Status.Width, to)
		}
		if l := run.Spec.Locality; l != nil {
			by += by / *l.GroupGPUs * *run.Spec.SparesPerGroup
		}
		gpus += int(by)
		money[string(run.Spec.Owner)[len("org:"):]] += int(by)
	}
	free := 0
	for node := range w.Nodes {
		free += w.sizeOf(node) - int(w.heldOn(node))
	}
	if gpus > free {
		w.t.Fatalf("Runs are let grow by %d GPUs and %d are free: %s", gpus, free, w.growths())
	}
	for payer, by := range money {
		if has := w.left(payer) + w.left("p") + w.left("lender"); by > has {
			w.t.Fatalf("I3: Runs are let grow by %d GPUs that %s pays for, which can pay for %d with its family and its sponsor",
				by, payer, has)
		}
	}
}

// checkIntended asserts that a pod of a cohort is not placed where a Reservation intends to be (R23).
func (w *world) checkIntended(pod *corev1.Pod, node string) {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		p := w.Book.Prospect(w.Runs[name].UID).Promise
		if p == nil || p.At.After(w.Now.Add(reservationLead)) {
			continue
		}
		for _, held := range p.Nodes {
			if held.Node == node {
				w.t.Fatalf("R23: pod %s grows onto node %s, which Run %s is promised", pod.Name, node, name)
			}
		}
	}
}

// fleet adds nodes to a domain.
func (w *world) fleet(domain string, nodes int) {
	for i := range nodes {
		w.addNode(fmt.Sprintf("%s-n%02d", domain, i), domain)
	}
}

func TestARunGrowsStepByStep(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 5)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(1, 1), upTo(2))
		var widths []int32
		for range 40 {
			w.reconcile("run0")
			w.grow()
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
			for _, uid := range w.Bindings() {
				w.Bind(uid, sim.Written)
			}
			w.Pass(time.Second)
			if width := w.Runs["run0"].Status.Width; width != nil && width.Granted > 0 &&
				!slices.Contains(widths, width.Granted) {
				widths = append(widths, width.Granted)
			}
		}
		if want := []int32{16, 24, 32}; !slices.Equal(widths, want) {
			w.t.Fatalf("the widths are %v, want %v", widths, want)
		}
		w.granted("run0", 32)
		cohorts := map[int32]rqv1.LeaseReason{}
		for _, lease := range w.OpenLeases() {
			cohorts[lease.Spec.Cohort] = lease.Spec.Reason
		}
		if want := map[int32]rqv1.LeaseReason{0: rqv1.ReasonStart, 1: rqv1.ReasonGrow,
			2: rqv1.ReasonGrow}; !maps.Equal(cohorts, want) {
			w.t.Fatalf("the cohorts are %v, want %v", cohorts, want)
		}
		w.desire("run0", 8)
		w.settle()
		w.granted("run0", 8)
		for _, lease := range w.Leases {
			if lease.Status.Closed && lease.Status.ClosureReason != rqv1.ClosedShrink {
				w.t.Fatalf("Lease %s is closed as %s", lease.Name, lease.Status.ClosureReason)
			}
		}
		w.desire("run0", 24)
		w.settle()
		w.granted("run0", 24)
	})
}

// What a Run grows to is what there is room, money and, for whole groups, spares for.
func TestHowFarARunGrows(t *testing.T) {
	for name, test := range map[string]struct {
		nodes, more  int
		budget       int
		spares, step int
		want         int32
	}{
		"as desired":                {4, 4, 512, 0, 1, 48},
		"as the room allows":        {4, 1, 512, 0, 1, 40},
		"as the money allows":       {4, 4, 40, 0, 1, 40},
		"on a step":                 {4, 1, 512, 0, 2, 32},
		"with the spares of groups": {8, 3, 512, 1, 1, 40},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", test.nodes)
				w.setBudget("a", "org:a", test.budget)
				w.submitWithSpares("run0", "org:a", 4, 1, 8, test.spares, elastic(4-test.step, test.step), upTo(2/test.step))
				w.settle()
				w.granted("run0", 32)
				w.fleet("d1", test.more)
				w.settle()
				w.granted("run0", test.want)
			})
		})
	}
}

// A Run does not grow into the room that a Reservation intends, nor back into what it was cut.
func TestGrowthYieldsToReservations(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.setBudget("b", "org:b", 64)
		w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(1, 1), upTo(2))
		w.reconcile("run0")
		for range 2 {
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
			for _, uid := range w.Bindings() {
				w.Bind(uid, sim.Written)
			}
			w.reconcile("run0")
		}
		w.granted("run0", 16)
		w.submit("run1", "org:b", 3, 1, 8)
		w.reconcile("run1")
		w.place("run1-0") // it is refused, and promised
		w.Pass(time.Minute)
		w.settle()
		w.granted("run0", 16)
		w.addNode("d0-n04", "d0")
		w.settle()
		w.running("run1", "although it fits")
		w.granted("run0", 16)
		w.DeleteRun("run1")
		w.settle()
		w.granted("run0", 32)
	})
}

// A scheduler that comes back in the middle of a growth completes it.
func TestGrowthGoesOnAfterARestart(t *testing.T) {
	for bound := range 3 {
		t.Run(fmt.Sprintf("%d bound", bound), func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 2)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(2, 2), upTo(1))
				w.settle()
				w.granted("run0", 16)
				w.fleet("d1", 2)
				w.Pass(time.Minute)
				w.grow()
				w.reconcile("run0")
				w.reconcile("run0")
				for _, uid := range append(w.SortedPods(), w.SortedPods()...) {
					w.cycle(uid)
				}
				binding := w.Bindings()
				if len(binding) != 2 {
					w.t.Fatalf("%d pods are being bound, want the cohort of 2", len(binding))
				}
				for _, uid := range binding[:bound] {
					w.Bind(uid, sim.Written)
				}
				w.crash()
				w.settle()
				w.granted("run0", 32)
				for _, lease := range w.Leases {
					if lease.Status.Closed {
						w.t.Fatalf("Lease %s was given up", lease.Name)
					}
				}
			})
		})
	}
}

// A cohort that loses its room on the way is given up: the Run goes on as it was, and tries again later.
func TestACohortThatDoesNotFitIsGivenUp(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(2, 1), upTo(1))
		w.settle()
		w.fleet("d1", 1)
		w.Pass(time.Minute)
		w.grow()
		w.reconcile("run0")
		w.reconcile("run0")
		w.RemoveNode("d1-n00")
		cohort := w.place("run0-2")
		if refusal := w.Book.Refusal(w.Runs["run0"].UID); refusal == nil || !refusal.Grow {
			w.t.Fatalf("the refusal is %+v, want that of a cohort", refusal)
		}
		w.reconcile("run0")
		w.reconcile("run0")
		if w.Pods[cohort] != nil || w.Book.Refusal(w.Runs["run0"].UID) != nil {
			w.t.Fatalf("something is left of the cohort: pod %v, refusal %v", w.Pods[cohort], w.Book.Refusal(w.Runs["run0"].UID))
		}
		w.granted("run0", 16)
		w.fleet("d1", 1)
		w.grow()
		if to := w.Book.Prospect(w.Runs["run0"].UID).GrowTo; to != 0 {
			w.t.Fatalf("it is let grow to %d at once", to)
		}
		w.settle()
		w.granted("run0", 24)
	})
}

// A pod of the Run that is lost while a cohort is under way comes first.
func TestALostPodEndsAGrowth(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 24)
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 0, ungrouped, elastic(2, 1), upTo(3))
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.DeleteRun("run1")
		w.reconcile("run1")
		w.Pass(time.Minute)
		w.grow()
		w.reconcile("run0")
		w.reconcile("run0")
		lost := w.pod("run0-0")
		w.DeletePod(lost)
		w.settle()
		w.granted("run0", 20)
		if ended := w.Leases[leaseOf(w, lost)]; ended.Status.ClosureReason != rqv1.ClosedDeleted {
			w.t.Fatalf("the lost pod's Lease is closed as %s", ended.Status.ClosureReason)
		}
	})
}

func leaseOf(w *world, pod types.UID) string {
	for name, lease := range w.Leases {
		if lease.Labels["rq.davidlangworthy.io/pod-uid"] == string(pod) {
			return name
		}
	}
	return ""
}

// A rank that is replaced while its Run still grows passes the barrier by itself, and the cohort's last pod does not
// open it for that rank again.
func TestTheBarrierOfACohortIsItsOwn(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 5)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, elastic(2, 2), upTo(1))
		w.desire("run0", 16)
		w.settle()
		w.desire("run0", 32)
		w.grow()
		w.reconcile("run0")
		w.reconcile("run0")
		w.DeletePod(w.pod("run0-0"))
		w.dies(2, sim.ByControllers) // after the Lease and the pod, before the status says that the growth is given up
		w.reconcile("run0")
		if growing := w.Runs["run0"].Status.Width.Growing; growing != 32 {
			w.t.Fatalf("the Run grows to %d", growing)
		}
		for _, name := range []string{"run0-0", "run0-2", "run0-3"} {
			w.cycle(w.pod(name))
		}
		if len(w.Binding) != 3 {
			w.t.Fatalf("%d pods are past the barrier", len(w.Binding))
		}
		w.settle()
		w.granted("run0", 32)
	})
}
