package zoo

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/story"
)

// disturbance is how pods of a workload end though their node is not lost.
type disturbance struct {
	name string
	// ends ends pods of the workload on a node, and returns which. back has the node be as it was; nil where it is.
	ends func(t *told, node string) map[string]bool
	back story.NodeChange
	// lasts is for how long the node is not as it was.
	lasts time.Duration
}

var disturbances = []disturbance{
	{name: "is-drained", ends: (*told).drains, back: func(n *corev1.Node) { n.Spec.Unschedulable = false }},
	{name: "is-drained-for-long", ends: (*told).drains, back: func(n *corev1.Node) { n.Spec.Unschedulable = false },
		lasts: 20 * time.Second},
	{name: "is-tainted", ends: (*told).taints, back: untainted},
	{name: "is-tainted-for-long", ends: (*told).taints, back: untainted, lasts: 20 * time.Second},
	{name: "is-turned-away", ends: (*told).turnsAway},
	{name: "is-turned-away-and-deleted", ends: (*told).turnsAwayAndDeletes},
}

// disturbed are the situations in which that happens: while there is room elsewhere, and while there is none and
// somebody younger waits for some.
func disturbed() (out []situation) {
	for _, d := range disturbances {
		out = append(out,
			situation{name: d.name, play: func(t *told) { t.isDisturbed(d, false) }},
			situation{name: d.name + "-on-a-full-fleet", play: func(t *told) { t.isDisturbed(d, true) }})
	}
	return out
}

// isDisturbed: what its controllers make in place of the pods that ended runs. Where there is no other room it has the
// same places again, before anybody younger; what is not made again leaves its room to them.
func (t *told) isDisturbed(by disturbance, full bool) {
	t.makes()
	pod, before := t.loses()
	t.Later(2 * time.Second) // when a Run has started is known in whole seconds
	if full {
		t.crowds()
	}
	node, places := t.On(pod.Name), t.places()
	lost := by.ends(t, node)
	t.sees("is to lose pods", func(w *story.World) error { return t.there(w, lost, before) })
	if by.back != nil {
		t.Never(by.lasts, t.w.Name+" is to be tended", t.tend)
		t.ChangeNode(node, by.back)
	}
	t.recovers(lost, before)
	switch {
	case full && t.w.Lost == "over":
		t.Says(younger, rqv1.RunRunning)
	case full:
		t.Same("its places", places, t.places())
		t.Nothing(younger)
	}
	t.Sound()
}

// there is an error while a pod that is to end has not been told to.
func (t *told) there(w *story.World, lost map[string]bool, before map[string]types.UID) error {
	gpu, _ := t.own(w)
	for _, pod := range gpu {
		if lost[pod.Name] && pod.UID == before[pod.Name] && pod.DeletionTimestamp == nil {
			return fmt.Errorf("pod %s is there", pod.Name)
		}
	}
	return nil
}

// younger is a Run that waits for any GPU.
const younger = "younger"

// crowds has a Run wait on a full fleet.
func (t *told) crowds() {
	t.occupies()
	t.Submit(younger, 1, story.InPods(1), tolerant)
	t.Says(younger, rqv1.RunPending, "short by 1")
}

// occupies has nobody's pods hold all GPUs that are free.
func (t *told) occupies() {
	held := t.places()
	for i := range gpuNodes {
		node := fmt.Sprintf("d0-%d", i)
		if free := 8 - held[node]; free > 0 {
			t.Occupy("others-"+node, node, story.GPUs(int64(free)), func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			})
		}
	}
}

// first is a Run that has the whole fleet.
const first = "first"

// fills has a Run take all GPUs.
func (t *told) fills() {
	t.Submit(first, gpuNodes*8, story.InPods(8), tolerant)
	t.Says(first, rqv1.RunRunning)
}

// tolerant lets a Run's pods on nodes with GPUs.
var tolerant = story.Templated(func(of *corev1.PodTemplateSpec) {
	of.Spec.Tolerations = []corev1.Toleration{{Key: gpuTaint, Operator: corev1.TolerationOpExists}}
})

// places are the GPUs of open Leases of the Runs that stand for the workload, by node.
func (t *told) places() map[string]int32 {
	out := map[string]int32{}
	for _, run := range groups(t.World()) {
		for node, gpus := range t.Held(run.Name) {
			out[node] += gpus
		}
	}
	return out
}

// drains has somebody cordon a node and evict the workload's pods there.
func (t *told) drains(node string) map[string]bool {
	lost := t.on(t.IsNode(node).Name)
	t.ChangeNode(node, story.Cordoned)
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		t.evicts(name)
	}
	return lost
}

const lookedAt = "example.com/looked-at"

// taints has somebody keep others from a node, which ends nobody, and then have those leave who are there.
func (t *told) taints(node string) map[string]bool {
	t.ChangeNode(node, story.Tainted(lookedAt, "", corev1.TaintEffectNoSchedule))
	t.Never(10*time.Second, t.w.Name+" is to run on", func() error { return t.runs(t.World()) })
	lost := t.on(t.IsNode(node).Name)
	t.ChangeNode(node, story.Tainted(lookedAt, "", corev1.TaintEffectNoExecute))
	return lost
}

// untainted takes those taints off a node.
func untainted(n *corev1.Node) {
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == lookedAt })
}

// turnsAwayAndDeletes likewise, and has the pod's controller delete it as soon as it sees that.
func (t *told) turnsAwayAndDeletes(node string) map[string]bool {
	lost := t.turnsAway(node)
	for name := range lost {
		t.DeletePod(name)
	}
	return lost
}

// turnsAway has a node not take one of the workload's pods, for once.
func (t *told) turnsAway(node string) map[string]bool {
	name := slices.Max(slices.Collect(maps.Keys(t.on(t.IsNode(node).Name))))
	t.Exit(name, story.EndedFor("UnexpectedAdmissionError", "Allocate failed"))
	return map[string]bool{name: true}
}
