package book_test

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// withCPU has a Run's pods ask for CPUs and, unless it is 0, for a port of their nodes.
func withCPU(cpu string, port int32) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		if s.Template == nil {
			s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		}
		beside(&s.Template.Spec, cpu, port)
	}
}

func beside(spec *corev1.PodSpec, cpu string, port int32) {
	spec.Containers[0].Resources = asking(map[corev1.ResourceName]string{"cpu": cpu}, nil).Spec.Containers[0].Resources
	if port > 0 {
		asked := corev1.ContainerPort{HostPort: port, ContainerPort: port, Protocol: corev1.ProtocolTCP}
		if port == addressed {
			asked.HostIP = "127.0.0.1"
		}
		spec.Containers[0].Ports = []corev1.ContainerPort{asked}
	}
}

// addressed is a port that pods ask for on one address alone.
const addressed = 9090

// apart has each of a Run's pods want a node to itself, as far as the Run goes.
func apart(s *rqv1.RunSpec) {
	if s.Template == nil {
		s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	}
	s.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}}}
}

// asks has the rules of other schedulers be asked before anything is decided for good, or not.
func (w *world) asks(yes bool) {
	w.Checks = yes
	w.Boot(nil)
}

// besideAny has a Run's pods ask for something beside GPUs: nodes have 16 CPUs.
func (w *world) besideAny(t *rapid.T) func(*rqv1.RunSpec) {
	return withCPU(rapid.SampledFrom([]string{"1", "4", "6", "9", "16"}).Draw(t, "CPUs of a pod"),
		rapid.SampledFrom([]int32{0, 0, 8080, 9090}).Draw(t, "port"))
}

// bystander puts a pod on a node that holds no GPUs.
func (w *world) bystander(name, node, cpu string, port int32) {
	pod := asking(nil, nil)
	pod.Name, pod.UID, pod.Namespace, pod.Spec.NodeName = name, types.UID(name), "other", node
	pod.Status.Phase = corev1.PodRunning
	beside(&pod.Spec, cpu, port)
	w.unforeseen()
	w.SetBystander(pod)
}

// bystandAny has a pod come to a node that is no Run's, or one leave.
func (w *world) bystandAny(t *rapid.T) {
	if uid, ok := pick(t, "bystander", slices.Sorted(maps.Keys(w.Bystanders))); ok && rapid.Bool().Draw(t, "leaves") {
		w.unforeseen()
		w.DropBystander(uid)
		return
	}
	if node, ok := pick(t, "node", slices.Sorted(maps.Keys(w.Nodes))); ok {
		w.NextUID++
		w.bystander(fmt.Sprintf("bystander-%d", w.NextUID), node,
			rapid.SampledFrom([]string{"1", "8", "12"}).Draw(t, "CPUs"), rapid.SampledFrom([]int32{0, 0, 8080}).Draw(t, "port"))
	}
}
