package sim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machines are nodes as every cluster has some beside those that Runs use, which are to change nothing for these: a
// control plane's, one of another architecture without GPUs, and one whose GPUs are of a type that nobody uses, without
// the labels of the topology. kwok plays their kubelets.
func Machines() []corev1.Node {
	machine := func(name, arch, gpus string) corev1.Node {
		has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"),
			corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
		if gpus != "" {
			has["nvidia.com/gpu"] = resource.MustParse(gpus)
		}
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelArchStable: arch,
				corev1.LabelInstanceTypeStable: "m6i.8xlarge"}},
			Status: corev1.NodeStatus{Capacity: has, Allocatable: has}}
	}
	plane, plain, other := machine("control-plane-0", "amd64", ""), machine("plain-0", "arm64", ""),
		machine("other-0", "amd64", "4")
	plane.Labels["node-role.kubernetes.io/control-plane"] = ""
	plane.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane",
		Effect: corev1.TaintEffectNoSchedule}}
	other.Labels["gpu.flavor"] = "T4"
	return []corev1.Node{plane, plain, other}
}
