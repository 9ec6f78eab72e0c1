package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// breathing is a Run that started an hour ago with one group of two pods of 8 GPUs, may have up to three, and is let
// grow to two.
func breathing(edit func(*Observed)) Observed {
	o := scene(func(o *Observed) {
		o.Demand.Groups, o.Demand.LeastPods, o.Demand.StepPods = 1, 2, 2
		o.Run.Spec.Resources.TotalGPUs = 16
		o.Run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 48, StepGPUs: 16}
		o.Run.Status = rqv1.RunStatus{ObservedGeneration: 3, Phase: rqv1.RunRunning, Message: "bound 16 GPUs",
			GPUsPerPod: 8, Width: &rqv1.RunWidth{Min: 16, Max: 48, Desired: 48, Granted: 16, Allocated: 16},
			Funding: &rqv1.RunFundingStatus{OwnedGPUs: 16},
			Conditions: []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started",
				Message:            "bound 16 GPUs",
				LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)), ObservedGeneration: 3}},
		}
		o.pods("n0", "n1")
		o.leases(time.Hour, map[int]string{0: "n0", 1: "n1"})
		o.NoticePeriod, o.GrowTo = 30*time.Second, 32
	})
	if edit != nil {
		edit(&o)
	}
	return o
}

// midway has the status say that the Run grows, with a cohort of two pods as described.
func midway(third, fourth string) func(*Observed) {
	return func(o *Observed) {
		o.GrowTo, o.Demand.Groups, o.Run.Status.Width.Growing = 0, 2, 32
		o.Run.Status.Width.Pending = "Grow to 32"
		o.pods("", "", third, fourth)
		for _, pod := range o.Pods[2:] {
			pod.Labels[rqv1.LabelCohort] = "1"
			pod.CreationTimestamp = metav1.NewTime(noon.Add(-10 * time.Second))
		}
	}
}

// paid opens Leases for the cohort.
func paid(o *Observed) { o.leases(5*time.Second, map[int]string{2: "n2", 3: "n3"}) }

func also(edits ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		for _, edit := range edits {
			if edit != nil {
				edit(o)
			}
		}
	}
}

func desire(gpus int32) func(*Observed) {
	return func(o *Observed) { o.Run.Spec.Malleable.DesiredTotalGPUs = &gpus }
}

// breath tells the widths of a decision beside its story.
func breath(d Decision) string {
	text := story(d)
	if d.Status != nil {
		w := d.Status.Width
		text += fmt.Sprintf(" [granted %d, growing %d, allocated %d, pending %q]", w.Granted, w.Growing, w.Allocated,
			w.Pending)
	}
	return text
}

// TestGrowth goes through every state of a cohort, and everything that may come in between: the Run itself is never
// hurt.
func TestGrowth(t *testing.T) {
	bound := also(midway("n2", "n3"), paid)
	refused := func(o *Observed) {
		o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8", Grow: true}
	}
	const started = `Running: bound 16 GPUs [granted 16, growing 32, allocated 16, pending "Grow to 32"]`
	const givenUp = `Running: bound 16 GPUs [granted 16, growing 0, allocated 16, pending ""]`
	for name, test := range map[string]struct {
		edit func(*Observed)
		want string
	}{
		"it is told before pods are made": {nil, started},
		"then they are":                   {midway("", ""), "create run-2; create run-3"},
		"the one that lacks":              {midway("", "-"), "create run-2"},
		"a cohort that waits":             {midway("-", "-"), ""},
		"one that is partly bound": {also(midway("n2", "-"), paid),
			`Running: bound 16 GPUs [granted 16, growing 32, allocated 24, pending "Grow to 32"]`},
		"all of it is bound": {bound, `Running: grew to 32 GPUs [granted 32, growing 0, allocated 32, pending ""]`},
		"a rank of the cohort has ended before the last is bound": {also(bound, func(o *Observed) {
			o.Pods[2].Status.Phase = corev1.PodSucceeded
			o.Leases = slices.Delete(o.Leases, 2, 3)
		}), `Running: grew to 32 GPUs [granted 32, growing 0, allocated 24, pending ""]`},
		"bound without its Leases": {midway("n2", "n3"),
			`delete run-2 if Unpaid; delete run-3 if Unpaid; Running: bound 16 GPUs [granted 16, growing 32, allocated 32, ` +
				`pending "Grow to 32"]`},
		"not desired":          {desire(16), givenUp},
		"not desired any more": {also(midway("-", "-"), desire(16)), givenUp},
		"refused":              {also(midway("-", "-"), refused), givenUp},
		"refused by the API server": {also(midway("", ""), func(o *Observed) { o.Problem = "exceeded quota" }),
			givenUp},
		"too late": {also(midway("-", "-"), func(o *Observed) { o.Now = noon.Add(time.Minute) }),
			givenUp},
		"a pod of the Run is lost": {also(midway("-", "-"), func(o *Observed) { o.Pods = o.Pods[1:] }),
			"close lease-0 Deleted if NodeStands; create run-0; Running: replacing 1 of 2 pods [granted 16, " +
				"growing 0, allocated 8, pending \"\"]"},
		"a node of the Run is lost": {also(midway("-", "-"), func(o *Observed) { o.Pods[0].Spec.NodeName = "gone" }),
			"delete run-0 if NodeLost; " + givenUp},
		"a pod of the Run is lost before": {func(o *Observed) { o.Pods = o.Pods[1:] },
			"close lease-0 Deleted if NodeStands; create run-0; Running: replacing 1 of 2 pods [granted 16, " +
				"growing 0, allocated 8, pending \"\"]"},
		"a pod of the cohort breaks": {also(midway("n2 Failed", "-"), paid),
			"close lease-2 Failed if NodeStands; " + givenUp},
		"a rank has ended meanwhile": {also(bound, func(o *Observed) { o.Pods[0].Status.Phase = corev1.PodSucceeded }),
			`close lease-0 Completed; Running: grew to 32 GPUs [granted 32, growing 0, allocated 24, pending ""]`},
		"a pod of the Run is lost as the last is bound": {
			also(bound, func(o *Observed) { o.Pods[0].DeletionTimestamp = &metav1.Time{Time: noon} }),
			`Running: grew to 32 GPUs [granted 32, growing 0, allocated 32, pending ""]`},
		"the Run completes": {also(midway("n2", "-"), paid, func(o *Observed) {
			o.Pods[0].Status.Phase, o.Pods[1].Status.Phase = corev1.PodSucceeded, corev1.PodSucceeded
		}), `delete run-2; delete run-3; close lease-0 Completed; close lease-1 Completed; Completed: all 2 pods completed ` +
			`[granted 0, growing 0, allocated 0, pending ""]`},
		"a rank fails": {also(midway("n2", "-"), paid, func(o *Observed) { o.Pods[1].Status.Phase = corev1.PodFailed }),
			`delete run-0; delete run-2; delete run-3; close lease-1 Failed; Failed: pod run-1 failed [granted 0, growing 0, ` +
				`allocated 0, pending ""]`},
		"a Reservation shrinks below the cohort": {
			also(bound, func(o *Observed) { o.Pods[3].Spec.NodeName = ""; o.Cuts = []rank.Cut{shrinkTo(16)} }),
			`Running: bound 16 GPUs [granted 16, growing 0, allocated 24, pending "Shrink to 16"]`},
		"no growth while a Reservation holds the Run down": {func(o *Observed) { o.Cuts = []rank.Cut{shrinkTo(16)} }, ""},
	} {
		if got := breath(Decide(breathing(test.edit))); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

// grown is the same Run once the cohort is bound and granted.
func grown(edit func(*Observed)) Observed {
	return breathing(also(midway("n2", "n3"), paid, func(o *Observed) {
		o.Run.Status.Width = &rqv1.RunWidth{Min: 16, Max: 48, Desired: 32, Granted: 32, Allocated: 32}
		o.Run.Status.Conditions[0].Reason = "Grow"
		o.Run.Status.Funding.OwnedGPUs = 32
		o.Run.Status.Message, o.Run.Status.Conditions[0].Message = "grew to 32 GPUs", "grew to 32 GPUs"
	}, desire(32), edit))
}

// TestWidthsInTurn carries decisions out until nothing is left to do: how a Run grows, shrinks and gives a cohort up.
func TestWidthsInTurn(t *testing.T) {
	const narrowed = "Running: shrunk to 16 GPUs"
	ended := []string{narrowed, "delete run-2; delete run-3", "close lease-2 Shrink; close lease-3 Shrink; " + narrowed}
	for name, test := range map[string]struct {
		observed Observed
		want     []string
	}{
		"grows":              {breathing(nil), []string{"Running: bound 16 GPUs", "create run-2; create run-3"}},
		"shrinks as desired": {grown(desire(16)), ended},
		"shrinks with the spares of its groups": {grown(also(desire(16), func(o *Observed) {
			o.spares("n4", "n5")
			o.standing(time.Hour)
		})), []string{narrowed, "delete run-2; delete run-3; delete run-s1",
			"close lease-2 Shrink; close lease-3 Shrink; close lease-s1 Shrink; " + narrowed}},
		"shrinks for a Reservation and stays": {grown(func(o *Observed) { o.Cuts, o.GrowTo = []rank.Cut{shrinkTo(16)}, 32 }),
			ended},
		"gives a cohort up": {breathing(also(midway("n2", "-"), func(o *Observed) {
			o.leases(5*time.Second, map[int]string{2: "n2"})
			o.Now = noon.Add(time.Hour)
			o.Pods[3].Status.Phase = corev1.PodPending
		})), []string{"Running: bound 16 GPUs", "delete run-2; delete run-3",
			"close lease-2 Shrink; Running: bound 16 GPUs"}},
		"is wide enough": {grown(nil), nil},
	} {
		if diff := cmp.Diff(test.want, test.observed.play(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWidthsConvergeFromEveryCrash kills the process after every step of every decision while a Run shrinks, or gives a
// cohort up: it ends up the same.
func TestWidthsConvergeFromEveryCrash(t *testing.T) {
	for name, scene := range map[string]func() Observed{
		"shrink": func() Observed { return grown(desire(16)) },
		"cohort given up": func() Observed {
			return breathing(also(midway("n2", "n3"), paid, desire(16)))
		},
		"cohort refused": func() Observed {
			return breathing(also(midway("n2", "-"), desire(16),
				func(o *Observed) { o.leases(time.Second, map[int]string{2: "n2"}) }))
		},
	} {
		for round := range 4 {
			for step := range 6 {
				o := scene()
				for i := range 8 {
					steps := -1
					if i == round {
						steps = step
					}
					o.carryOut(Decide(o), steps)
				}
				at := fmt.Sprintf("%s, killed after step %d of decision %d", name, step, round)
				if d := story(Decide(o)); d != "" {
					t.Errorf("%s: it does not come to rest: %s", at, d)
				}
				if w := o.Run.Status.Width; len(o.Pods) != 2 || len(o.Leases) != 2 || w.Granted != 16 || w.Growing != 0 ||
					w.Allocated != 16 || w.Pending != "" {
					t.Errorf("%s: %d pods, %d Leases, width %+v", at, len(o.Pods), len(o.Leases), w)
				}
			}
		}
	}
}

func TestCohortsAreNumbered(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*Observed)
		want string
	}{
		"the first":             {midway("", ""), "1"},
		"the rest of the first": {midway("", "-"), "1"},
		"after another": {
			also(midway("", ""), func(o *Observed) { o.Pods[1].Labels[rqv1.LabelCohort] = "4" }), "5"},
		"after one whose Leases are open": {also(midway("", ""), func(o *Observed) { o.Leases[0].Spec.Cohort = 7 }), "8"},
	} {
		pod := Decide(breathing(test.edit)).Create[0]
		if got := pod.Labels[rqv1.LabelCohort]; got != test.want {
			t.Errorf("%s: cohort %s, want %s", name, got, test.want)
		}
	}
	lost := Decide(breathing(func(o *Observed) { o.Pods, o.GrowTo = o.Pods[1:], 0 })).Create[0]
	if got := lost.Labels[rqv1.LabelCohort]; got != "0" {
		t.Errorf("a replacement has cohort %s, want 0", got)
	}
}

// TestALeaseOfBeforeAShrink has a Run be let grow again before the Lease is closed of a pod that went with its shrink.
func TestALeaseOfBeforeAShrink(t *testing.T) {
	closed := Decide(breathing(func(o *Observed) { o.leases(time.Hour, map[int]string{2: "n2"}) })).Close
	if len(closed) != 1 || closed[0].Lease.Name != "lease-2" || closed[0].Reason != rqv1.ClosedShrink {
		t.Errorf("it ends so: %+v", closed)
	}
}

func TestNoticeOfAVoluntaryShrink(t *testing.T) {
	o := grown(desire(16))
	o.carryOut(Decide(o), -1)
	want := &Notice{rqv1.ClosedShrink, "the Run is shrunk to 16 GPUs", 30}
	for _, deletion := range Decide(o).Delete {
		if diff := cmp.Diff(want, deletion.Notice); diff != "" {
			t.Errorf("%s (-want +got):\n%s", deletion.Pod.Name, diff)
		}
	}
}
