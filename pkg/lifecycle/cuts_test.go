package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// cut returns what Reservation ns/other-r0, activated half a minute ago, does to the scene's Run.
func cut(action rqv1.CutAction, edit func(*rank.Cut)) rank.Cut {
	c := rank.Cut{
		Cut: rqv1.Cut{Run: rqv1.NamespacedName{Namespace: "ns", Name: "run"}, UID: "run-uid", Action: action,
			GPUs: 8},
		Reservation: types.NamespacedName{Namespace: "ns", Name: "other-r0"},
		For:         types.NamespacedName{Namespace: "ns", Name: "other"},
		At:          noon.Add(-30*time.Second + 500*time.Millisecond),
	}
	if edit != nil {
		edit(&c)
	}
	return c
}

func shrinkTo(gpus int32) rank.Cut {
	return cut(rqv1.CutShrink, func(c *rank.Cut) { c.Width = &gpus })
}

// victim is a Run with two spares that started an hour ago, may shrink to 8 GPUs by steps of 8, and is cut.
func victim(cuts []rank.Cut, edit func(*Observed)) Observed {
	o := spared(nil, "n4", "n5")
	o.Run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: 32, StepGPUs: 8}
	o.Run.Status.Width = &rqv1.RunWidth{Min: 8, Max: 32, Desired: 32, Granted: 32, Allocated: 32}
	o.Run.Status.Conditions = []metav1.Condition{{
		Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started",
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	o.Cuts, o.NoticePeriod = cuts, 30*time.Second
	if edit != nil {
		edit(&o)
	}
	return o
}

func checkpointed(o *Observed) {
	o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
}

// play carries decisions out one after the other until nothing is left to do, the way that a controller does and the
// cluster answers: pods that are deleted terminate first and are gone after the next decision. It returns what was
// done, decision by decision.
func (o *Observed) play(t *testing.T) []string {
	t.Helper()
	var told []string
	for range 12 {
		d := Decide(*o)
		going := slices.ContainsFunc(o.Pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		if story(d) == "" && !going {
			return told
		}
		if story(d) != "" {
			told = append(told, story(d))
		}
		o.carryOut(d, -1)
	}
	t.Fatalf("the Run does not come to rest:\n%s", strings.Join(told, "\n"))
	return nil
}

// carryOut does the first steps of a decision; all of them when steps is negative.
func (o *Observed) carryOut(d Decision, steps int) {
	gone := map[*corev1.Pod]bool{}
	if o.Former == nil {
		o.Former = map[types.UID]bool{}
	}
	for _, pod := range o.Pods {
		gone[pod] = pod.DeletionTimestamp != nil
	}
	var todo []func()
	status := func() {
		run := o.Run.DeepCopy()
		run.Status = *d.Status
		for _, pod := range o.Pods {
			if run.Status.Attempt > o.Run.Status.Attempt {
				o.Former[pod.UID] = true
			}
		}
		o.Run = run
	}
	if d.TellFirst() {
		todo = append(todo, status)
	}
	for _, deletion := range d.Delete {
		todo = append(todo, func() { deletion.Pod.DeletionTimestamp = &metav1.Time{Time: noon} })
	}
	for _, closing := range d.Close {
		todo = append(todo, func() { o.Leases = without(o.Leases, closing.Lease) })
	}
	for _, pod := range d.Create {
		todo = append(todo, func() {
			pod.UID, pod.CreationTimestamp = types.UID("new-"+pod.Name), metav1.NewTime(noon)
			o.Pods = append(o.Pods, pod)
		})
	}
	if d.Status != nil && !d.TellFirst() {
		todo = append(todo, status)
	}
	for i, step := range todo {
		if steps >= 0 && i >= steps {
			break
		}
		step()
	}
	for pod := range gone {
		if gone[pod] {
			o.Pods = without(o.Pods, pod)
		}
	}
}

func without[T comparable](all []T, one T) []T {
	var out []T
	for _, each := range all {
		if each != one {
			out = append(out, each)
		}
	}
	return out
}

func TestCuts(t *testing.T) {
	drop := cut(rqv1.CutDropSpare, func(c *rank.Cut) { c.Spares = []int32{1} })
	lottery := cut(rqv1.CutLottery, nil)
	const everything = "delete run-0; delete run-1; delete run-2; delete run-3; delete run-s0; delete run-s1"
	const verify = "; check the draw with kubectl runs explain --verify other-r0 -n ns"
	var words []string
	for _, lease := range []string{"0", "1", "2", "3", "s0", "s1"} {
		words = append(words, "close lease-"+lease+" RandomPreempt")
	}
	closed := strings.Join(words, "; ")
	const anew = "create run-0; create run-1; create run-2; create run-3; create run-s0; create run-s1"
	for name, test := range map[string]struct {
		observed Observed
		want     []string
	}{
		"shrink to one group": {victim([]rank.Cut{shrinkTo(16)}, nil), []string{
			"Running: shrunk to 16 GPUs", "delete run-2; delete run-3; delete run-s1",
			"close lease-2 Shrink; close lease-3 Shrink; close lease-s1 Shrink; Running: shrunk to 16 GPUs"}},
		"the narrowest of two shrinks": {victim([]rank.Cut{shrinkTo(16), shrinkTo(24)}, func(o *Observed) {
			o.Demand.Confined = false
			o.Demand.Groups, o.Demand.PodsPerGroup, o.Demand.SparesPerGroup = 1, 4, 2
		}), []string{
			"Running: shrunk to 16 GPUs", "delete run-2; delete run-3",
			"close lease-2 Shrink; close lease-3 Shrink; Running: shrunk to 16 GPUs"}},
		"shrink a Run that is narrower already": {victim([]rank.Cut{shrinkTo(32)}, nil), []string{"Running: bound 32 GPUs"}},
		"drop a spare": {victim([]rank.Cut{drop}, nil), []string{
			"delete run-s1; Running: bound 32 GPUs", "close lease-s1 DropSpare; create run-s1; Running: bound 32 GPUs"}},
		"drop a spare that came later": {
			victim([]rank.Cut{drop}, func(o *Observed) { o.Leases[5].Spec.Start = metav1.NewMicroTime(drop.At) }), []string{
				"Running: bound 32 GPUs"}},
		"lottery, with a checkpoint": {victim([]rank.Cut{lottery}, checkpointed), []string{
			everything + "; Pending: cut by lottery for Run ns/other (Reservation ns/other-r0); it waits to start again from " +
				"its checkpoint" + verify,
			closed + "; " + anew}},
		"lottery, without": {victim([]rank.Cut{lottery}, nil), []string{
			everything + "; Failed: cut by lottery for Run ns/other (Reservation ns/other-r0); it does not start again, " +
				"since it declares no checkpoint" + verify,
			closed}},
		"a lottery before the Run started anew": {victim([]rank.Cut{lottery}, func(o *Observed) {
			o.Run.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-10 * time.Second))
			for _, lease := range o.Leases {
				lease.Spec.Start = metav1.NewMicroTime(noon.Add(-11 * time.Second))
			}
		}), []string{"Running: bound 32 GPUs"}},
		"a lottery in the second of the start": {victim([]rank.Cut{lottery}, func(o *Observed) {
			o.Run.Status.Conditions[0].LastTransitionTime = metav1.NewTime(lottery.At.Truncate(time.Second))
		}), []string{"Running: bound 32 GPUs"}},
		"a Run that has completed holds nothing to cut": {victim([]rank.Cut{lottery}, func(o *Observed) {
			for _, pod := range o.Pods[:4] {
				pod.Status.Phase = corev1.PodSucceeded
			}
			o.Leases = o.Leases[4:]
		}), []string{"delete run-s0; delete run-s1; Completed: all 4 pods completed",
			"close lease-s0 RandomPreempt; close lease-s1 RandomPreempt"}},
	} {
		o := test.observed
		if diff := cmp.Diff(test.want, o.play(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCutsConvergeFromEveryCrash kills the process after every step of the first decision and of each later one: the
// Run ends up the same, every Lease that was open closes with the cut's reason, and nothing is left.
func TestCutsConvergeFromEveryCrash(t *testing.T) {
	drop := cut(rqv1.CutDropSpare, func(c *rank.Cut) { c.Spares = []int32{0} })
	for name, test := range map[string]struct {
		cut     rank.Cut
		edit    func(*Observed)
		reason  rqv1.ClosureReason
		phase   rqv1.RunPhase
		granted int32
		closes  int
	}{
		"shrink": {shrinkTo(16), nil, rqv1.ClosedShrink, rqv1.RunRunning, 16, 3},
		"what is on loan": {cut(rqv1.CutReturn, func(c *rank.Cut) { c.Width = shrinkTo(16).Width }), nil, rqv1.ClosedShrink,
			rqv1.RunRunning, 16, 3},
		"drop":                  {drop, nil, rqv1.ClosedDropSpare, rqv1.RunRunning, 32, 1},
		"lottery":               {cut(rqv1.CutLottery, nil), nil, rqv1.ClosedRandomPreempt, rqv1.RunFailed, 0, 6},
		"lottery with a return": {cut(rqv1.CutLottery, nil), checkpointed, rqv1.ClosedRandomPreempt, rqv1.RunPending, 0, 6},
		"a rank that has ended": {cut(rqv1.CutLottery, nil), func(o *Observed) {
			checkpointed(o)
			o.Pods[0].Status.Phase = corev1.PodSucceeded
			o.Leases = o.Leases[1:]
		}, rqv1.ClosedRandomPreempt, rqv1.RunPending, 0, 5},
	} {
		for round := range 3 {
			for step := range 14 {
				o := victim([]rank.Cut{test.cut}, test.edit)
				closed := map[string]rqv1.ClosureReason{}
				for i := range 12 {
					d := Decide(o)
					steps := -1
					if i == round {
						steps = step
					}
					before := o.Leases
					o.carryOut(d, steps)
					for _, closing := range d.Close {
						if len(without(before, closing.Lease)) < len(before) && len(without(o.Leases, closing.Lease)) == len(o.Leases) {
							closed[closing.Lease.Name] = closing.Reason
						}
					}
				}
				at := fmt.Sprintf("%s, killed after step %d of decision %d", name, step, round)
				if d := story(Decide(o)); d != "" {
					t.Fatalf("%s: it does not come to rest: %s", at, d)
				}
				if len(closed) != test.closes {
					t.Errorf("%s: closed %v, want %d Leases", at, closed, test.closes)
				}
				for lease, reason := range closed {
					if reason != test.reason {
						t.Errorf("%s: %s is closed as %s, want %s", at, lease, reason, test.reason)
					}
				}
				if got := o.Run.Status; got.Phase != test.phase || got.Width.Granted != test.granted {
					t.Errorf("%s: %s with %d GPUs granted, want %s and %d", at, got.Phase, got.Width.Granted, test.phase, test.granted)
				}
			}
		}
	}
}

func TestNotice(t *testing.T) {
	long := int64(600)
	o := victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, func(o *Observed) {
		o.Pods[0].Spec.TerminationGracePeriodSeconds = &long
		o.NoticePeriod = 1500 * time.Millisecond
	})
	got := map[string]*Notice{}
	for _, deletion := range Decide(o).Delete {
		got[deletion.Pod.Name] = deletion.Notice
	}
	why := "cut by lottery for Run ns/other (Reservation ns/other-r0)"
	short := &Notice{rqv1.ClosedRandomPreempt, why, 2}
	want := map[string]*Notice{
		"run-0": {rqv1.ClosedRandomPreempt, why, 600}, "run-1": short, "run-2": short, "run-3": short, "run-s0": short,
		"run-s1": short,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of a lottery (-want +got):\n%s", diff)
	}

	o = victim([]rank.Cut{shrinkTo(16)}, func(o *Observed) { o.Run.Status.Width.Granted = 16 })
	for _, deletion := range Decide(o).Delete {
		if want := (&Notice{rqv1.ClosedShrink, "shrunk for Run ns/other (Reservation ns/other-r0)", 30}); !cmp.Equal(want,
			deletion.Notice) {
			t.Errorf("of a shrink: %s", cmp.Diff(want, deletion.Notice))
		}
	}
	o.Cuts = nil
	for _, deletion := range Decide(o).Delete {
		if want := (&Notice{rqv1.ClosedShrink, "the Run is shrunk to 16 GPUs", 30}); !cmp.Equal(want, deletion.Notice) {
			t.Errorf("of a Run that is narrower: %s", cmp.Diff(want, deletion.Notice))
		}
	}
}

func TestConditionsOfACutRun(t *testing.T) {
	o := victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, checkpointed)
	next := Decide(o).Status
	started := meta.FindStatusCondition(next.Conditions, rqv1.ConditionStarted)
	if started.Status != metav1.ConditionFalse || started.Reason != "RandomPreempt" || next.Width.Granted != 0 ||
		next.Funding != nil {
		t.Errorf("a Run that waits again: %+v, width %+v, funding %+v", started, next.Width, next.Funding)
	}
	told := next.Message
	o.play(t)
	if o.Run.Status.Message != told {
		t.Errorf("the message is now: %s", o.Run.Status.Message)
	}
	o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
	if got := Decide(o).Status.Message; got != "short by 8" {
		t.Errorf("once it is refused it says: %s", got)
	}

	o = victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, nil)
	finished := meta.FindStatusCondition(Decide(o).Status.Conditions, rqv1.ConditionFinished)
	if finished == nil || finished.Reason != "RandomPreempt" {
		t.Errorf("a Run that ends: %+v", finished)
	}
}

// A Run whose status says that it was cut is cut, although the Reservation is over before all its pods are told: those
// that are left are told too, and no Lease is closed for another reason.
func TestACutThatWasSaidIsDone(t *testing.T) {
	for steps := 1; steps < 8; steps++ {
		o := victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, checkpointed)
		o.carryOut(Decide(o), steps)
		message := o.Run.Status.Message
		o.Cuts = nil
		o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
		closed := map[rqv1.ClosureReason]int{}
		for range 6 {
			d := Decide(o)
			for i := range d.Delete {
				if d.Delete[i].Notice == nil || d.Delete[i].Notice.Reason != rqv1.ClosedRandomPreempt {
					t.Errorf("after %d steps: pod %s goes with notice %+v", steps, d.Delete[i].Pod.Name, d.Delete[i].Notice)
				}
			}
			for i := range d.Close {
				closed[d.Close[i].Reason]++
			}
			o.carryOut(d, -1)
			if len(o.Leases) > 0 && (o.Run.Status.Phase != rqv1.RunPending || o.Run.Status.Message != message) {
				t.Errorf("after %d steps the Run is %s: %s", steps, o.Run.Status.Phase, o.Run.Status.Message)
			}
		}
		if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedRandomPreempt: 6}, closed); diff != "" {
			t.Errorf("after %d steps, Leases by reason (-want +got):\n%s", steps, diff)
		}
	}
}
