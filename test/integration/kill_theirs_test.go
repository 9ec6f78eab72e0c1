package integration

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// brought is what somebody brings as it is: the Run that stands for it, and its objects. What nobody makes anew when it
// is lost is brittle.
type brought struct {
	run     string
	objects []client.Object
	brittle bool
}

// bring makes a Job, a JobSet, a pod or a group of pods of 8 GPUs. The second Job of a JobSet may be made once the
// first is ready.
func (m *mixture) bring(name string) brought {
	m.t.Helper()
	switch m.random.IntN(4) {
	case 0:
		return brought{run: m.groupRun("batch", "Job", name), objects: []client.Object{m.job(name, 4, 2, noFailures)}}
	case 1:
		second := partOfJobSet{name: "b", pods: 1, gpus: 4, lasts: "1h"}
		if m.random.IntN(2) == 0 {
			second.on, second.status = "a", "Ready"
		}
		js := m.jobSetInTurn(name, partOfJobSet{name: "a", pods: 1, gpus: 4, lasts: "1h"}, second)
		return brought{run: m.jobSetRun(name), objects: []client.Object{js}}
	case 2:
		pod := m.barePod(name, "8")
		m.create(pod)
		return brought{m.groupRun("", "Pod", name), []client.Object{pod}, true}
	}
	out := brought{run: m.groupRun("", "Group", name), brittle: true}
	for i := range 2 {
		pod := m.barePod(fmt.Sprintf("%s-%d", name, i), "4")
		pod.Annotations[rqv1.AnnotationGroup], pod.Annotations[rqv1.AnnotationGroupSize] = name, "2"
		m.create(pod)
		out.objects = append(out.objects, pod)
	}
	return out
}

func (m *mixture) barePod(name, gpus string) *corev1.Pod {
	pod := m.foreignPod(name, corev1.ResourceList{gpuResource: resource.MustParse(gpus)})
	pod.Annotations = map[string]string{stays: "1h"}
	return pod
}

// deleteOne deletes a pod of a Job or a JobSet, whose controller makes another.
func (m *mixture) deleteOne() {
	m.t.Helper()
	for _, b := range m.theirs {
		pods := m.podsOf(b.run)
		if b.brittle || len(pods) == 0 {
			continue
		}
		pod := pods[slices.Min(slices.Collect(maps.Keys(pods)))]
		if err := m.api.Delete(m.t.Context(), &pod); client.IgnoreNotFound(err) != nil {
			m.t.Fatal(err)
		}
		return
	}
}

// isBrittle reports whether a Run stands for what nobody makes anew.
func (m *mixture) isBrittle(run string) bool {
	return slices.ContainsFunc(m.theirs, func(b brought) bool { return b.brittle && b.run == run })
}

// takeAway deletes what was brought. Pods that were drawn are gone by then.
func (m *mixture) takeAway(b brought) {
	m.t.Helper()
	for _, object := range b.objects {
		err := m.api.Delete(m.t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			m.t.Fatal(err)
		}
	}
}
