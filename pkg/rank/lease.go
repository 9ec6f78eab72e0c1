package rank

import (
	"k8s.io/apimachinery/pkg/types"
)

// LeaseName returns the name of the Lease of a pod. It is made of the pod's name and UID, so that whoever writes it,
// and however often, there is one Lease per pod.
func LeaseName(pod string, uid types.UID) string {
	return pod + "-" + string(uid[:min(8, len(uid))])
}
