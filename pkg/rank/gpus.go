package rank

import (
	corev1 "k8s.io/api/core/v1"
)

// PodGPUs returns the GPUs that a pod of a spec requests, of all of some resources together.
func PodGPUs(spec *corev1.PodSpec, resources ...string) int {
	sum := 0
	for _, resource := range resources {
		sum += podGPUs(spec, resource)
	}
	return sum
}

// podGPUs returns how much of a resource a pod of a spec requests: that of its containers and sidecars together, or of
// an init container and the sidecars that are started before it where that is more. Extended resources cannot be
// overcommitted, so limits and requests are the same, and a template may say either.
func podGPUs(spec *corev1.PodSpec, resource string) int {
	total, sidecars, most := 0, 0, 0
	for i := range spec.Containers {
		total += containerGPUs(&spec.Containers[i], resource)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		gpus := containerGPUs(c, resource)
		most = max(most, sidecars+gpus)
		if IsSidecar(c) {
			sidecars += gpus
		}
	}
	return max(total+sidecars, most)
}

func containerGPUs(c *corev1.Container, resource string) int {
	if quantity, ok := c.Resources.Requests[corev1.ResourceName(resource)]; ok {
		return int(quantity.Value())
	}
	quantity := c.Resources.Limits[corev1.ResourceName(resource)]
	return int(quantity.Value())
}

// IsSidecar reports whether an init container is one that goes on beside the others, and is started again whatever
// becomes of it (KEP-753).
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
