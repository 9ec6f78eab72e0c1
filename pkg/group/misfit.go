package group

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Misfit says why a pod that names a group cannot have a rank in the Run that stands for it; empty where it can. Others
// of the group are not hurt by it.
func Misfit(run *rqv1.Run, pod *corev1.Pod, gpus int) string {
	key := Of(pod).Key
	if each := run.Spec.Resources.GPUsPerPod; each != nil && gpus != int(*each) {
		return fmt.Sprintf("pod %s asks for %d GPUs, and each pod of %s, for which Run %s stands, for %d: all pods of a "+
			"group that ask for GPUs must ask for the same number", pod.Name, gpus, key, run.Name, *each)
	}
	owner := strings.TrimSpace(pod.Annotations[rqv1.AnnotationOwner])
	if owner != "" && owner != string(run.Spec.Owner) {
		return fmt.Sprintf("annotation %s of Pod/%s is %s, and %s pays for %s, for which Run %s stands: one owner pays for "+
			"a group", rqv1.AnnotationOwner, pod.Name, shown(owner), run.Spec.Owner, key, run.Name)
	}
	return ""
}

// Full says that a Run which has started has pods for all the ranks that it may ever have, so that another pod of its
// group waits until one is lost; empty where it has not.
func Full(run *rqv1.Run, members []*corev1.Pod) string {
	each := run.Spec.Resources.GPUsPerPod
	if run.Status.Phase != rqv1.RunRunning || each == nil || *each == 0 {
		return ""
	}
	widest := run.Spec.Resources.TotalGPUs
	if m := run.Spec.Malleable; m != nil {
		widest = m.MaxTotalGPUs
	}
	there := 0
	for _, pod := range members {
		if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
			continue
		}
		there++
		if pod.DeletionTimestamp != nil || rank.Ended(pod) {
			return "" // its rank is another's soon
		}
	}
	ranks := int(widest / *each)
	if there < ranks {
		return ""
	}
	key, _ := KeyOf(run)
	why := fmt.Sprintf("%s started with %d pods, for which Run %s stands, and all of them are there: another pod gets "+
		"the place of one that is lost", key, ranks, run.Name)
	if l := run.Spec.Locality; l != nil && l.GroupGPUs != nil && *l.GroupGPUs > *each {
		why += fmt.Sprintf(", or starts with others that make up another group of %d GPUs", *l.GroupGPUs)
	}
	return why
}
