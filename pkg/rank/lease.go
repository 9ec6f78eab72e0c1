package rank

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// LeaseName returns the name of the Lease of a pod. It is made of the pod's name and UID, so that whoever writes it,
// and however often, there is one Lease per pod.
func LeaseName(pod string, uid types.UID) string {
	of := string(uid[:min(8, len(uid))])
	pod = pod[:min(len(pod), longestName-len(of)-1)] // that others have made may be called as long as anything may
	return strings.TrimRight(pod, ".-") + "-" + of
}

// longestName is how long the name of an object may be.
const longestName = 253
