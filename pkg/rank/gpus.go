package rank

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodGPUs returns the GPUs that a pod of a spec requests, of all of some resources together.
func PodGPUs(spec *corev1.PodSpec, resources ...string) int {
	sum := 0
	for _, name := range resources {
		sum += podGPUs(spec, name)
	}
	return sum
}

// podGPUs returns how much of a named resource a pod of a spec requests: that of its containers and sidecars together,
// or of an init container and the sidecars that are started before it where that is more. Extended resources cannot be
// overcommitted, so limits and requests are the same, and a template may say either.
func podGPUs(spec *corev1.PodSpec, name string) int {
	total, sidecars, most := 0, 0, 0
	for i := range spec.Containers {
		total += containerGPUs(&spec.Containers[i], name)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		gpus := containerGPUs(c, name)
		most = max(most, sidecars+gpus)
		if IsSidecar(c) {
			sidecars += gpus
		}
	}
	return min(max(total+sidecars, most), MostGPUs)
}

// MostGPUs is what counts of GPUs are cut off at: more than any node or Run has, and so few that no sum of them passes
// what can be counted, whatever people write in their pods.
const MostGPUs = 1 << 20

// Count returns how many a quantity of an extended resource is, between none and MostGPUs.
func Count(quantity resource.Quantity) int {
	switch {
	case quantity.Sign() <= 0:
		return 0
	case quantity.CmpInt64(MostGPUs) > 0:
		return MostGPUs
	}
	return int(quantity.Value())
}

func containerGPUs(c *corev1.Container, name string) int {
	if quantity, ok := c.Resources.Requests[corev1.ResourceName(name)]; ok {
		return Count(quantity)
	}
	return Count(c.Resources.Limits[corev1.ResourceName(name)])
}

// IsSidecar reports whether an init container is one that goes on beside the others, and is started again whatever
// becomes of it (KEP-753).
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
