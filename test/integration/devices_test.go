package integration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// breaks has the kubelet of a pod that runs say how healthy a device of it is.
func (s *site) breaks(name string, health corev1.ResourceHealthStatus) (node string) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to say how healthy a device is", func() error {
		pod := s.podsOf(s.runOf(name))[name]
		if pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) == 0 {
			return fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
		}
		node = pod.Spec.NodeName
		pod.Status.ContainerStatuses[0].Name = pod.Spec.Containers[0].Name
		pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = []corev1.ResourceStatus{{Name: "nvidia.com/gpu",
			Resources: []corev1.ResourceHealth{{ResourceID: "GPU-7", Health: health}}}}
		return s.api.Status().Update(s.t.Context(), &pod)
	})
	return node
}
