package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// rankLost takes a rank's pod away with its node; its Lease is still open there.
func (o *Observed) rankLost(rank int) {
	for i, pod := range o.Pods {
		if pod.Name == fmt.Sprintf("run-%d", rank) {
			o.Pods = append(o.Pods[:i:i], o.Pods[i+1:]...)
			break
		}
	}
	o.Leases[rank].Spec.Slice.Nodes[0].Name = "gone"
}

// rankAgain adds a new pod of a rank, unbound, that records the spare of its group.
func (o *Observed) rankAgain(index, spare int) {
	pod := o.maker().newRank(index)
	pod.UID = "again"
	r := rank.Replacement{Lost: "gone", Spare: fmt.Sprintf("run-s%d", spare), Node: fmt.Sprintf("n%d", 4+spare)}
	for _, other := range o.Pods {
		if other.Name == r.Spare {
			r.SpareUID = other.UID
		}
	}
	if r.SpareUID == "" {
		r.SpareUID = "00000100" // of the first, which is gone
	}
	pod.Annotations = map[string]string{rqv1.AnnotationReplaces: r.Annotation()}
	pod.CreationTimestamp = metav1.NewTime(noon)
	o.Pods = append(o.Pods, pod)
}

// replacements are the records of the pods that are created, by name.
func replacements(d Decision) map[string]rank.Replacement {
	out := map[string]rank.Replacement{}
	for _, pod := range slices.Concat(d.Replace, d.Create) {
		if r, ok := rank.ReplacementOf(pod); ok {
			out[pod.Name] = r
		}
	}
	return out
}

func TestDecideOnALostNode(t *testing.T) {
	noRoom := &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
	spare := rank.Replacement{Lost: "gone", Spare: "run-s0", SpareUID: "00000100", Node: "n4"}
	none := rank.Replacement{Lost: "gone"}
	for name, test := range map[string]struct {
		observed Observed
		want     string
		replaces map[string]rank.Replacement
	}{
		"a rank that is lost takes the spare's place": {
			spared(func(o *Observed) { o.rankLost(1) }, "n4", "n5"),
			"replace run-1; close lease-1 NodeFailure; Running: replacing 1 of 4 pods",
			map[string]rank.Replacement{"run-1": spare}},
		"the spare makes room once that is recorded": {
			spared(func(o *Observed) {
				o.rankLost(1)
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.rankAgain(1, 0)
			}, "n4", "n5"),
			"delete run-s0; Running: replacing 1 of 4 pods", nil},
		"and its Lease closes": {
			spared(func(o *Observed) {
				o.rankLost(1)
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.rankAgain(1, 0)
			}, "", "n5"),
			"close lease-s0 Swap; create run-s0; Running: replacing 1 of 4 pods", nil},
		"the spare of another group is none": {
			spared(func(o *Observed) { o.rankLost(1) }, "", "n5"),
			"close lease-1 NodeFailure; close lease-s0 Deleted if NodeStands; create run-1; create run-s0; " +
				"Running: replacing 1 of 4 pods",
			map[string]rank.Replacement{"run-1": none}},
		"nor is one on a node that takes no pods": {
			spared(func(o *Observed) { o.rankLost(1); o.Leases[4].Spec.Slice.Nodes[0].Name = "cordoned" }, "cordoned", "n5"),
			"close lease-1 NodeFailure; create run-1; Running: replacing 1 of 4 pods",
			map[string]rank.Replacement{"run-1": none}},
		"one spare serves one rank": {
			spared(func(o *Observed) { o.rankLost(0); o.rankLost(1) }, "n4", "n5"),
			"replace run-0; close lease-0 NodeFailure; close lease-1 NodeFailure; create run-1; Running: replacing 2 of 4 pods",
			map[string]rank.Replacement{"run-0": spare, "run-1": none}},
		"a pod deleted by hand needs no spare": {
			spared(func(o *Observed) { o.rankLost(1); o.Leases[1].Spec.Slice.Nodes[0].Name = "n1" }, "n4", "n5"),
			"close lease-1 Deleted if NodeStands; create run-1; Running: replacing 1 of 4 pods", nil},
		"a rank that waits in vain is made anew": {
			spared(func(o *Observed) {
				o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "", ""
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.Refusal = noRoom
			}, "n4", "n5"), "delete run-1; Running: replacing 1 of 4 pods", nil},
		"with a spare": {
			spared(func(o *Observed) {
				o.Pods = append(o.Pods[:1:1], o.Pods[2:]...)
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.Refusal = noRoom
			}, "n4", "n5"), "replace run-1; Running: replacing 1 of 4 pods",
			map[string]rank.Replacement{"run-1": {Spare: "run-s0",
				SpareUID: "00000100", Node: "n4"}}},
		"also when other rules turned the nodes down": {
			spared(func(o *Observed) {
				o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "", ""
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.Refusal = &plan.Refusal{Reason: plan.NodesRejected, Message: "no CPU",
					Rejected: &plan.Rejection{Nodes: 1, Node: "n9", Rule: "no CPU"}}
			}, "n4", "n5"), "delete run-1; Running: replacing 1 of 4 pods", nil},
		"not for another spare than the one that it records, which stands by and gives it no place": {
			spared(func(o *Observed) {
				o.Pods = append(o.Pods[:1:1], o.Pods[2:]...)
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.rankAgain(1, 1)
				again, _ := rank.ReplacementOf(o.Pods[len(o.Pods)-1])
				o.Unseated = map[types.UID]bool{again.SpareUID: true}
				o.Refusal = &plan.Refusal{Reason: plan.InsufficientBudget, Message: "short by 8"}
			}, "n4", "n5"), "delete run-0; delete run-1; delete run-2; delete run-3; delete run-s0; delete run-s1; " +
				"Failed: a lost pod could not be replaced and the Run declares no checkpoint: short by 8", nil},
		"not for what passes by itself": {
			spared(func(o *Observed) {
				o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "", ""
				o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
				o.Refusal = &plan.Refusal{Reason: plan.NotYet, Message: "a Lease is still open"}
			}, "n4", "n5"), "Running: replacing 1 of 4 pods", nil},
		"a pod that nobody ends": {
			spared(func(o *Observed) {
				o.Run.DeletionTimestamp, o.Run.Status.Phase = &metav1.Time{Time: noon}, rqv1.RunFailed
				for _, pod := range o.Pods {
					pod.DeletionTimestamp = &metav1.Time{Time: noon}
				}
				o.Pods[1].Spec.NodeName, o.Pods[1].DeletionTimestamp = "gone", &metav1.Time{Time: noon}
				o.Leases[1].Spec.Slice.Nodes[0].Name = "gone"
			}, "n4", "n5"), "delete run-1 if NodeLost", nil},
		"a Run that has failed leaves the lost node too": {
			spared(func(o *Observed) {
				o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "it broke"}
				for _, pod := range o.Pods {
					pod.DeletionTimestamp = &metav1.Time{Time: noon}
				}
				o.Pods[1].Spec.NodeName = "gone"
			}, "n4", "n5"), "delete run-1 if NodeLost; Failed: it broke", nil},
		"what ended well needs no node": {
			spared(func(o *Observed) { o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "gone", corev1.PodSucceeded }, "n4",
				"n5"),
			"close lease-1 Completed; Running: bound 32 GPUs", nil},
		"a swap is told": {
			spared(func(o *Observed) {
				o.rankLost(3)
				o.rankAgain(3, 1)
				again := o.Pods[len(o.Pods)-1]
				again.Spec.NodeName, again.Status.Phase = "n5", corev1.PodRunning
				o.Leases[3].Spec.Slice.Nodes[0].Name, o.Leases[3].Labels[rqv1.LabelPodUID] = "n5", "again"
				o.Leases = o.Leases[:5]
				o.Pods = append(o.Pods[:4:4], o.Pods[5:]...)
			}, "n4", "n5"), "create run-s1; Running: group 1 swapped to spare after node failure", nil},
	} {
		d := Decide(test.observed)
		if got := story(d); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
		want := test.replaces
		if want == nil {
			want = map[string]rank.Replacement{}
		}
		if diff := cmp.Diff(want, replacements(d)); diff != "" {
			t.Errorf("%s: records (-want +got):\n%s", name, diff)
		}
	}
}

// A malleable Run that has neither room nor a spare goes on narrower, and is not touched further while the book does
// not know that.
func TestDecideToGoOnNarrower(t *testing.T) {
	malleable := func(recorded int32) Observed {
		return scene(func(o *Observed) {
			o.Run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 32, StepGPUs: 16}
			o.Demand.LeastPods, o.Demand.StepPods = 2, 2
			o.pods("n0", "-", "n2", "n3")
			started(o)
			o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
			o.Run.Status.Width = &rqv1.RunWidth{Granted: recorded}
			o.Refusal, o.Narrower = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}, 16
		})
	}
	if got, want := story(Decide(malleable(32))), "Running: shrunk to 16 GPUs"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := story(Decide(malleable(16))),
		"delete run-2; delete run-3; Running: replacing 1 of 2 pods"; got != want {
		t.Errorf("once it is recorded: got %s, want %s", got, want)
	}
}

// Where other scheduling rules turned nodes down, they are asked once more before a Run gives up what it has.
func TestDecideOnARankThatNodesTurnDown(t *testing.T) {
	observed := func(reason plan.Reason, age time.Duration) Observed {
		return scene(func(o *Observed) {
			o.pods("n0", "-", "n2", "n3")
			started(o)
			o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
			o.Refusal = &plan.Refusal{Reason: reason, Message: "no CPU",
				Rejected: &plan.Rejection{Nodes: 1, Node: "n1", Rule: "no CPU"}, Since: noon.Add(-age)}
		})
	}
	const failed = "delete run-0; delete run-1; delete run-2; delete run-3; Failed: a lost pod could not be replaced " +
		"and the Run declares no checkpoint: no CPU"
	leaving := observed(plan.InsufficientGPUs, time.Minute)
	leaving.Refusal.Rejected.Known = true
	leaving.Pods[1].DeletionTimestamp = &metav1.Time{Time: noon}
	if got := story(Decide(leaving)); got != "Running: replacing 1 of 4 pods" {
		t.Errorf("a pod that is made anew waits no more: %s", got)
	}
	for _, test := range []struct {
		reason plan.Reason
		age    time.Duration
		want   string
	}{
		{plan.NodesRejected, time.Second, "Running: replacing 1 of 4 pods"},
		{plan.NodesRejected, retryRejected, "Running: replacing 1 of 4 pods"},
		{plan.NodesRejected, patience, failed},
		{plan.InsufficientGPUs, time.Second, "Running: replacing 1 of 4 pods"},
		{plan.InsufficientGPUs, patience, failed},
		{plan.NotYet, time.Hour, "Running: replacing 1 of 4 pods"},
	} {
		d := Decide(observed(test.reason, test.age))
		if got := story(d); got != test.want {
			t.Errorf("%s after %s:\n got %s\nwant %s", test.reason, test.age, got, test.want)
		}
		if retries := d.Retry > 0; retries != (test.want != failed) {
			t.Errorf("%s after %s: tried again after %s", test.reason, test.age, d.Retry)
		}
	}
}
