package rank_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

const gpu = "nvidia.com/gpu"

var containers = rapid.Custom(func(t *rapid.T) corev1.Container {
	c, kind := corev1.Container{}, rapid.SampledFrom([]string{"none", "limit", "both", "other"}).Draw(t, "asks")
	gpus := corev1.ResourceList{gpu: *resource.NewQuantity(int64(rapid.IntRange(0, 8).Draw(t, "gpus")),
		resource.DecimalSI)}
	switch kind {
	case "limit":
		c.Resources.Limits = gpus
	case "both":
		c.Resources.Limits, c.Resources.Requests = gpus, gpus
	case "other":
		c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("3"), "amd.com/gpu": resource.MustParse("5")}
	}
	return c
})

// asAdmitted has every limit requested too, as the API server stores a pod.
func asAdmitted(spec *corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for _, some := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range some {
			some[i].Resources.Requests = some[i].Resources.Limits
		}
	}
	return pod
}

// A pod asks for as many GPUs as kube-scheduler counts, whatever containers it has in which order.
func TestAPodAsksForWhatKubernetesCounts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	rapid.Check(t, func(t *rapid.T) {
		spec := &corev1.PodSpec{Containers: rapid.SliceOfN(containers, 0, 3).Draw(t, "containers"),
			InitContainers: rapid.SliceOfN(containers, 0, 4).Draw(t, "init containers")}
		for i := range spec.InitContainers {
			if rapid.Bool().Draw(t, "sidecar") {
				spec.InitContainers[i].RestartPolicy = &always
			}
		}
		requests := helpers.PodRequests(asAdmitted(spec), helpers.PodResourcesOptions{})
		want := requests[gpu]
		if got := rank.PodGPUs(spec, gpu); got != int(want.Value()) {
			t.Fatalf("%d GPUs, kube-scheduler counts %s", got, want.String())
		}
	})
}
