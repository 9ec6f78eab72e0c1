package book_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// gpuContainer is a container that asks for GPUs, one that stays beside those that follow if it is a sidecar.
func gpuContainer(gpus int, sidecar bool) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}}}
	if always := corev1.ContainerRestartPolicyAlways; sidecar {
		c.RestartPolicy = &always
	}
	return c
}

// A pod takes what kube-scheduler says that it takes: an init container runs beside the sidecars before it.
func TestPodGPUsAreThoseOfKubeScheduler(t *testing.T) {
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{gpuContainer(2, true), gpuContainer(4, false)},
		Containers:     []corev1.Container{gpuContainer(1, false)},
	}
	if got := rank.PodGPUs(&spec, "nvidia.com/gpu"); got != 6 {
		t.Errorf("an init container of 4 GPUs beside a sidecar of 2 takes %d GPUs", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		pod := corev1.Pod{}
		for i := range rapid.IntRange(0, 5).Draw(t, "init containers") {
			of := fmt.Sprint("of init container ", i)
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, gpuContainer(rapid.IntRange(0, 8).Draw(t, "GPUs "+of),
				rapid.Bool().Draw(t, "sidecar "+of)))
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			pod.Spec.Containers = append(pod.Spec.Containers,
				gpuContainer(rapid.IntRange(0, 8).Draw(t, fmt.Sprint("GPUs of container ", i)), false))
		}
		requests := resourcehelper.PodRequests(&pod, resourcehelper.PodResourcesOptions{})
		gpus := requests["nvidia.com/gpu"]
		if got, want := rank.PodGPUs(&pod.Spec, "nvidia.com/gpu"), int(gpus.Value()); got != want {
			t.Fatalf("the pod takes %d GPUs, and %d as kube-scheduler counts", got, want)
		}
	})
}
