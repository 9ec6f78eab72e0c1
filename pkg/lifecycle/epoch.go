package lifecycle

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// epochVariable is the variable of a container's environment that tells how many pods have had its rank before.
const epochVariable = "JOBTREE_EPOCH"

// SetEpoch says how many pods have had the rank of a new pod before it: 0 or more.
func SetEpoch(pod *corev1.Pod, epoch int) {
	value := strconv.Itoa(epoch)
	was := pod.Labels[rqv1.LabelEpoch]
	pod.Labels[rqv1.LabelEpoch] = value
	for i := range pod.Spec.Containers {
		env := pod.Spec.Containers[i].Env
		for k := range env {
			if env[k].Name == epochVariable && env[k].Value == was {
				env[k].Value = value
			}
		}
	}
}
