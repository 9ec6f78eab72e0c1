package group

import (
	"encoding/json"
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Reports reports whether the objects of a kind say by a condition whether their group has been scheduled (R43). Those
// of the coscheduling plugin say it by counts, which are their own controller's to write.
func Reports(k Key) bool { return k.API == nativeKind.API && k.Kind == nativeKind.Kind }

// PodGroups returns the kinds of objects that pods name as their group, and that may be made or changed after them.
func PodGroups() []schema.GroupKind {
	out := []schema.GroupKind{{Group: nativeKind.API, Kind: nativeKind.Kind}}
	for i := range kinds {
		if kinds[i].kind == kindPodGroup && kinds[i].api != "" {
			out = append(out, schema.GroupKind{Group: kinds[i].api, Kind: kindPodGroup})
		}
	}
	return out
}

// scheduledReason is given with the condition once it is True; the API names no constant for it.
const scheduledReason = "Scheduled"

// Scheduled returns the conditions of a group's object with the one that says whether the group has been scheduled, by
// the Run that stands for the group, or by why there is none; nil when there is nothing new to say. Once it is True it
// stays so, whatever becomes of the group: that is what the API says.
func Scheduled(object map[string]any, run *rqv1.Run, why string, now time.Time) []metav1.Condition {
	is := metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse,
		Reason: schedulingv1beta1.PodGroupReasonUnschedulable, Message: why, LastTransitionTime: metav1.NewTime(now)}
	switch {
	case run == nil:
	case run.Status.Phase == rqv1.RunRunning, run.Status.Phase == rqv1.RunCompleted:
		is.Status, is.Reason, is.Message = metav1.ConditionTrue, scheduledReason, fmt.Sprintf("Run %s has started", run.Name)
	default:
		is.Message = run.Status.Message
	}
	conditions := conditionsOf(object)
	if is.Message == "" || meta.IsStatusConditionTrue(conditions, is.Type) {
		return nil
	}
	is.ObservedGeneration, _, _ = unstructured.NestedInt64(object, "metadata", "generation")
	if !meta.SetStatusCondition(&conditions, is) {
		return nil
	}
	return conditions
}

// conditionsOf returns the conditions that an object has.
func conditionsOf(object map[string]any) (out []metav1.Condition) {
	said, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	text, err := json.Marshal(said)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}
