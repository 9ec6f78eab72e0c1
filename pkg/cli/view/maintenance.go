package view

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// MaintenanceOf says which nodes of a Run are to be out of service, and when; "" for none, or when it has ended.
func MaintenanceOf(run *rqv1.Run) string {
	c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionMaintenanceAhead)
	if c == nil || c.Status != metav1.ConditionTrue || run.Ended() {
		return ""
	}
	_, nodes, _ := strings.Cut(c.Message, "; ")
	return nodes
}
