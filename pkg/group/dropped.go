package group

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// nativeKind is of the groups that pods name in their spec.
var nativeKind = Key{API: schedulingv1beta1.GroupName, Kind: "PodGroup"}

// ToServe says what is to be done so that the API server serves the objects of a kind.
func ToServe(k Key) string {
	if k.API == nativeKind.API {
		return "start the API server with --feature-gates=GenericWorkload=true and " +
			"--runtime-config=scheduling.k8s.io/v1beta1=true"
	}
	return "install it"
}

// groupField is how the record of who wrote which field of a pod names the one that names its PodGroup.
const groupField = `"f:schedulingGroup"`

// Dropped reports whether whoever made a pod named its PodGroup, and the API server has dropped the name, as it does
// without a word while its feature gate is off. It shows in the record of who wrote what, which is made before.
func Dropped(pod *corev1.Pod) bool {
	if pod.Spec.SchedulingGroup != nil {
		return false
	}
	for _, m := range pod.ManagedFields {
		if m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.Raw, []byte(groupField)) {
			return true
		}
	}
	return false
}

// Trim leaves out of a pod who wrote what, but for what tells that its group was dropped.
func Trim(pod *corev1.Pod) {
	if pod.Spec.SchedulerName == rqv1.SchedulerName && Dropped(pod) {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte("{" + groupField + ":{}}")}}}
		return
	}
	pod.ManagedFields = nil
}
