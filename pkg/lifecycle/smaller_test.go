package lifecycle

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestWhatAGroupThatWasMadeSmallerSays: of a group that started with two pods, grew to four and is to have three by
// now, ranks that it is to be without are neither missing nor desired, also once the last pod has been returned, or is
// lost.
func TestWhatAGroupThatWasMadeSmallerSays(t *testing.T) {
	for name, c := range map[string]struct {
		granted int32
		lacks   rqv1.WidthLacks
		pods    []string
		gaveUp  []int
		says    string
	}{
		"whole": {32, "", []string{"", "n1", "n2", "n3"}, []int{0}, "Started: bound 24 GPUs"},
		"a loan less": {24, rqv1.LacksGPUs, []string{"", "n1", "n2"}, []int{0},
			"Started: bound 16 GPUs; short of free GPUs to grow to 24"},
		"the last is lost": {32, "", []string{"", "n1", "n2", ""}, []int{0}, "Replacing: replacing 1 of 3 pods"},
		"one is lost after a loan": {24, rqv1.LacksGPUs, []string{"", "n1", ""}, []int{0},
			"Replacing: replacing 1 of 2 pods"},
		"one is not made again": {32, "", []string{"", "n1", "n2", ""}, []int{0, 3},
			"PodsNotMade: runs with 2 of 3 pods: the others have not been created, and no places are kept for them"},
	} {
		t.Run(name, func(t *testing.T) {
			o := scene(func(o *Observed) {
				o.Demand.Groups, o.Demand.PodsPerGroup = 1, int(c.granted)/8
				o.Demand.LeastPods, o.Demand.StepPods = 2, 1
				o.pods(c.pods...)
				leases := map[int]string{}
				for i, node := range c.pods {
					if node != "" {
						leases[i] = node
					}
				}
				o.leases(time.Hour, leases)
				o.allLeased()
				spec := &o.Run.Spec
				spec.Source = rqv1.SourcePods
				spec.Pods = &rqv1.RunPods{Kind: "RayCluster", Name: "g", Late: true, Ranks: ptr.To[int32](3)}
				spec.Resources = rqv1.RunResources{GPUType: "H100", TotalGPUs: 16, GPUsPerPod: ptr.To[int32](8)}
				spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 32, StepGPUs: 8,
					DesiredTotalGPUs: ptr.To[int32](32)}
				o.Run.Status = rqv1.RunStatus{ObservedGeneration: 3, Phase: rqv1.RunRunning, GPUsPerPod: 8,
					Width: &rqv1.RunWidth{Min: 16, Max: 32, Desired: 24, Granted: c.granted, Allocated: c.granted},
					Conditions: []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue,
						Reason: "Started", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}}
				o.GrowthLacks, o.Forgone = c.lacks, map[int]types.UID{}
				for _, index := range c.gaveUp {
					o.Forgone[index] = ""
				}
			})
			s := situationOf(factsOf(o))
			if reason, message := storyOf(s); reason+": "+message != c.says {
				t.Errorf("it says %s: %s\nwant %s", reason, message, c.says)
			}
			if desired := boundsOf(&o.Run.Spec).Desired; desired != 24 {
				t.Errorf("it desires %d GPUs", desired)
			}
		})
	}
}

// TestWhatAGroupSaysWhosePodsGetNoRanks while it runs: why the API server refuses that, and not that its controller has
// made no pods, also once nothing is kept for them any more.
func TestWhatAGroupSaysWhosePodsGetNoRanks(t *testing.T) {
	for name, c := range map[string]struct {
		gaveUp bool
		late   bool
		says   string
	}{
		"its place is kept": {says: "NotCreated: replacing 1 of 4 pods: labels refused"},
		"nothing is kept for it": {gaveUp: true, says: "NotCreated: runs with 3 of 4 pods, and keeps no places for the " +
			"others: labels refused"},
		"it has one, and waits": {gaveUp: true, late: true, says: "PodsWait: runs with 3 of 4 pods: nothing was kept for " +
			"the others, and those that there are wait: short by 8"},
	} {
		o := scene(func(o *Observed) {
			o.pods("n0", map[bool]string{true: "-"}[c.late], "n2", "n3")
			o.leases(time.Hour, map[int]string{0: "n0", 2: "n2", 3: "n3"})
			o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
			o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunRunning, Conditions: []metav1.Condition{{
				Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started"}}}
			o.Problem = "labels refused"
			if c.gaveUp {
				o.Forgone = map[int]types.UID{1: ""}
			}
			if c.late {
				o.Refusal = &plan.Refusal{Reason: plan.InsufficientBudget, Message: "short by 8", Belated: true}
			}
		})
		d := Decide(o)
		started := meta.FindStatusCondition(d.Status.Conditions, rqv1.ConditionStarted)
		if says := started.Reason + ": " + d.Status.Message; says != c.says {
			t.Errorf("%s: it says %s", name, says)
		}
	}
}
