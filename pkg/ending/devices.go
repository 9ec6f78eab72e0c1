package ending

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Unhealthy returns how a pod ends, if it has not ended yet, one of whose devices is broken by what its kubelet says
// (KEP-4680); false where none is. A device of which the kubelet does not know is none.
func Unhealthy(pod *corev1.Pod) (Ending, bool) {
	for c := range statuses(pod) {
		for _, resource := range c.AllocatedResourcesStatus {
			for i := range resource.Resources {
				device := &resource.Resources[i]
				if device.Health != corev1.ResourceHealthStatusUnhealthy {
					continue
				}
				message := fmt.Sprintf("%s %s", resource.Name, device.ResourceID)
				if device.Message != nil && *device.Message != "" {
					message += ": " + *device.Message
				}
				return Ending{Cause: known(InDevices, string(device.Health), rqv1.CauseNode), Sign: string(device.Health),
					Message: message}, true
			}
		}
	}
	return Ending{}, false
}
