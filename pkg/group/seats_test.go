package group

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ofRay is a worker of RayCluster tune, in a group of which several hosts are one where it says which host it is.
func ofRay(name, part string, number, host string) *corev1.Pod {
	pod := podOf(name, 8, "ray.io/cluster", "tune", "ray.io/group", part)
	if number != "" {
		pod.Labels["ray.io/worker-group-replica-index"] = number
		pod.Labels["ray.io/replica-host-index"] = host
	}
	return pod
}

// in is a pod with a rank.
func in(pod *corev1.Pod, index int) *corev1.Pod {
	pod.Labels[rqv1.LabelRun], pod.Labels[rqv1.LabelRunUID] = "run", "uid"
	pod.Labels[rqv1.LabelIndex], pod.Labels[rqv1.LabelSource] = strconv.Itoa(index), string(rqv1.SourcePods)
	return pod
}

// goes is a pod that is told to go.
func goes(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{}
	return pod
}

// madeBy is a pod of a native PodGroup that a Job has made.
func madeBy(job, name, index string) *corev1.Pod {
	pod := ofGang(name, 8, labelCompletion, index)
	controls := true
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: &controls}}
	return pod
}

// TestSeats: a pod is for its own rank, for that of the pod that it replaces, or, where somebody else has its own, for
// one that is free; pods that belong together stay together.
func TestSeats(t *testing.T) {
	one, _, _ := strings.Cut(ray, "groupName: gpus")
	two := one + `groupName: gpus, replicas: 3, template: {spec: {schedulerName: jobtree, containers: [
      {name: ray-worker, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
  - {groupName: more, replicas: 1, template: {spec: {schedulerName: jobtree, containers: [
      {name: ray-worker, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`
	hosts := strings.NewReplacer("replicas: 3", "replicas: 3, numOfHosts: 2", "replicas: 1", "replicas: 2, numOfHosts: 2").
		Replace(two)
	for name, c := range map[string]struct {
		object           string
		waiting, members []*corev1.Pod
		want             map[string]int
	}{
		"all are new": {twoByTwo, []*corev1.Pod{ofJobSet("a", 8, "w", "1", "0"), ofJobSet("b", 8, "w", "0", "1")}, nil,
			map[string]int{"a": 2, "b": 1}},
		"one that goes is replaced": {twoByTwo, []*corev1.Pod{ofJobSet("b", 8, "w", "0", "1")},
			[]*corev1.Pod{in(goes(ofJobSet("a", 8, "w", "0", "1")), 1)}, map[string]int{"b": 1}},
		"one that is not known to go is": {twoByTwo, []*corev1.Pod{ofJobSet("b", 8, "w", "0", "1")},
			[]*corev1.Pod{in(ofJobSet("a", 8, "w", "0", "1"), 1)}, map[string]int{"b": 1}},
		"its rank is another's": {two, []*corev1.Pod{ofRay("m", "more", "", "")},
			[]*corev1.Pod{in(ofRay("g0", "gpus", "", ""), 0), in(ofRay("g1", "gpus", "", ""), 1),
				in(ofRay("g2", "gpus", "", ""), 3)}, map[string]int{"m": -1}},
		"it was another's": {two, []*corev1.Pod{ofRay("m", "more", "", "")},
			[]*corev1.Pod{in(goes(ofRay("g2", "gpus", "", "")), 3)}, map[string]int{"m": 3}},
		"it has had another": {two, []*corev1.Pod{ofRay("n", "more", "", "")},
			[]*corev1.Pod{in(goes(ofRay("m", "more", "", "")), 2)}, map[string]int{"n": 2}},
		"a part has grown": {hosts, []*corev1.Pod{ofRay("a1", "gpus", "2", "1"), ofRay("a0", "gpus", "2", "0"),
			ofRay("n", "more", "1", "1")},
			[]*corev1.Pod{in(ofRay("m0", "more", "0", "0"), 4), in(ofRay("m1", "more", "0", "1"), 5),
				in(ofRay("n0", "more", "1", "0"), 6), in(goes(ofRay("n1", "more", "1", "1")), 7)},
			map[string]int{"a0": 0, "a1": 1, "n": 7}},
		"a part has grown, and nothing is free": {hosts, []*corev1.Pod{ofRay("a", "gpus", "2", "1")},
			[]*corev1.Pod{in(ofRay("g0", "gpus", "0", "0"), 0), in(ofRay("g1", "gpus", "1", "0"), 2),
				in(ofRay("m", "more", "0", "0"), 4), in(ofRay("n", "more", "1", "1"), 6)},
			map[string]int{"a": 9}},
		"Jobs in one PodGroup": {"{kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 4}}}}", []*corev1.Pod{
			madeBy("a", "a0", "0"), madeBy("a", "a1", "1"), madeBy("b", "b0", "0"), madeBy("b", "b1", "1")}, nil,
			map[string]int{"a0": 0, "a1": 1, "b0": -1, "b1": -1}},
		"another has the rank of one that is made anew": {"{kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 3}}}}",
			[]*corev1.Pod{madeBy("b", "b0-anew", "0")}, []*corev1.Pod{in(madeBy("a", "a0", "0"), 0),
				in(madeBy("a", "a1", "1"), 1), in(goes(madeBy("b", "b0", "0")), 1)}, map[string]int{"b0-anew": -1}},
		"another is for it that has none": {"{kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 3}}}}",
			[]*corev1.Pod{madeBy("b", "b0-anew", "0"), madeBy("a", "a1", "1")}, []*corev1.Pod{in(madeBy("a", "a0", "0"), 0),
				in(goes(madeBy("b", "b0", "0")), 1)}, map[string]int{"b0-anew": 1, "a1": -1}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				pods := slices.Concat(c.waiting, c.members)
				for _, pod := range pods {
					pod.UID = types.UID(pod.Name)
				}
				shape := ShapeOf(&Observed{Rules: testRules, Key: Of(pods[0]).Key, Pods: pods, Object: objectOf(t, c.object)})
				ranks := map[string]int{}
				for uid, index := range shape.Seats(c.waiting, c.members) {
					ranks[string(uid)] = index
				}
				if diff := cmp.Diff(c.want, ranks); diff != "" {
					t.Errorf("ranks (-want +got):\n%s", diff)
				}
				slices.Reverse(c.waiting)
				slices.Reverse(c.members)
			}
		})
	}
}
