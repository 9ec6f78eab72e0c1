package zoo

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

const (
	templateHash = "pod-template-hash"
	revisionHash = "controller-revision-hash"
)

// revision is a name for a pod template.
func revision(o *object) string {
	text, err := json.Marshal(at(o.Object, "spec.template"))
	if err != nil {
		panic(err)
	}
	sum := fnv.New32a()
	_, _ = sum.Write(text)
	return fmt.Sprintf("%08x", sum.Sum32())
}

// ofDeployment makes a ReplicaSet for each template that it has had. While the template is not that of all pods, as
// many more pods are there as maxSurge says, and as many fewer are ready as maxUnavailable says.
func ofDeployment(o *object, seen *sight) (out []*object) {
	replicas, now := numberAt(o.Object, "spec.replicas", 1), o.GetName()+"-"+revision(o)
	rolling := mapAt(o.Object, "spec.strategy.rollingUpdate")
	total, spared := 0, numberAt(rolling, "maxUnavailable", 0)-replicas
	var before []*object
	for _, slot := range slices.Sorted(maps.Keys(seen.made)) {
		set := seen.made[slot]
		if set.GetKind() != "ReplicaSet" || set.GetOwnerReferences()[0].UID != o.GetUID() {
			continue
		}
		for _, pod := range seen.of(set) {
			if pod.DeletionTimestamp == nil && ready(pod) {
				spared++
			}
		}
		if set.GetName() != now {
			before = append(before, set)
			total += numberAt(set.Object, "spec.replicas", 0)
		}
	}
	for _, set := range before {
		n := numberAt(set.Object, "spec.replicas", 0)
		goes := max(0, min(n, spared))
		spared -= goes
		out = append(out, ofTemplate(o, set.GetName(), mapAt(set.Object, "spec.template"), n-goes))
	}
	n := min(replicas, replicas+numberAt(rolling, "maxSurge", 0)-total)
	return append(out, ofTemplate(o, now, mapAt(o.Object, "spec.template"), n))
}

// ofTemplate is the ReplicaSet of a Deployment for one template.
func ofTemplate(o *object, name string, template map[string]any, replicas int) *object {
	set := child(o, "apps/v1", "ReplicaSet", name, o.Object["spec"], words{templateHash: name}, nil)
	spec := set.Object["spec"].(map[string]any)
	spec["template"], spec["replicas"] = template, int64(replicas)
	return set
}

func ofReplicaSet(o *object, _ *sight) (out []*object) {
	for range numberAt(o.Object, "spec.replicas", 1) {
		out = append(out, pod(o, o.GetName()+"-", mapAt(o.Object, "spec.template"),
			words{templateHash: o.GetLabels()[templateHash]}, nil))
	}
	return out
}

// ofStatefulSet makes pods with names of their own. Those of another template than it has by now are made anew one by
// one, the last first.
func ofStatefulSet(o *object, seen *sight) (out []*object) {
	first, replicas := numberAt(o.Object, "spec.ordinals.start", 0), numberAt(o.Object, "spec.replicas", 1)
	now, turn := revision(o), true
	for i := replicas - 1; i >= 0; i-- {
		name, of := fmt.Sprintf("%s-%d", o.GetName(), first+i), now
		is := seen.pod(name)
		if is != nil && !turn {
			of = is.Labels[revisionHash]
		}
		turn = turn && is != nil && is.DeletionTimestamp == nil && is.Labels[revisionHash] == now && ready(is)
		out = append(out, pod(o, name, mapAt(o.Object, "spec.template"),
			words{"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": strconv.Itoa(first + i),
				revisionHash: of}, nil))
	}
	slices.Reverse(out)
	return out
}

// of returns the pods that an object controls.
func (s *sight) of(o *object) (out []*corev1.Pod) {
	for _, pod := range s.world.Pods {
		if by := pod.OwnerReferences; len(by) > 0 && by[0].UID == o.GetUID() {
			out = append(out, pod)
		}
	}
	return out
}
