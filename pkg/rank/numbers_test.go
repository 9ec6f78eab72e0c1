package rank

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestNoNumberOverflows: whatever people write in their pods, a pod has between none and a great many GPUs.
func TestNoNumberOverflows(t *testing.T) {
	container := func(gpus string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			"nvidia.com/gpu": resource.MustParse(gpus)}}}
	}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(gpus string) corev1.Container {
		c := container(gpus)
		c.RestartPolicy = &always
		return c
	}
	const half = "4611686018427387904" // of what can be counted
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want int
	}{
		"as written": {corev1.PodSpec{Containers: []corev1.Container{container("4"), container("4")}}, 8},
		"none":       {corev1.PodSpec{Containers: []corev1.Container{container("-4"), container("2")}}, 2},
		"much":       {corev1.PodSpec{Containers: []corev1.Container{container(half)}}, MostGPUs},
		"more together": {corev1.PodSpec{Containers: []corev1.Container{container(half), container(half),
			container("8")}}, MostGPUs},
		"all there is":     {corev1.PodSpec{Containers: []corev1.Container{container("9223372036854775807")}}, MostGPUs},
		"beyond":           {corev1.PodSpec{Containers: []corev1.Container{container("1e30")}}, MostGPUs},
		"init and sidecar": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar(half), container(half)}}, MostGPUs},
	} {
		if got := PodGPUs(&c.spec, "nvidia.com/gpu"); got != c.want {
			t.Errorf("%s: %d GPUs, want %d", name, got, c.want)
		}
		if got := PodGPUs(&c.spec, "nvidia.com/gpu", "amd.com/gpu"); got != c.want {
			t.Errorf("%s: %d GPUs of two resources, want %d", name, got, c.want)
		}
	}
	if sum := MostGPUs * math.MaxInt32; sum < 0 || sum/math.MaxInt32 != MostGPUs {
		t.Error("as many pods as may be overflow a sum")
	}
}
