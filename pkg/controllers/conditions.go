package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// tellConditions makes events of a Run's coming into overdraft or into risk, or out of them, and of shards that give way.
func (c *Controllers) tellConditions(run *rqv1.Run, status *rqv1.RunStatus) {
	for _, kind := range []string{rqv1.ConditionOverdraft, rqv1.ConditionAtRisk, rqv1.ConditionReclaimed, rqv1.ConditionGraceCapped,
		rqv1.ConditionNodesHeldBack} {
		is := meta.FindStatusCondition(status.Conditions, kind)
		was := meta.FindStatusCondition(run.Status.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Message == is.Message {
			continue
		}
		severity := corev1.EventTypeNormal
		if is.Status == metav1.ConditionTrue {
			severity = corev1.EventTypeWarning
		}
		c.events.Eventf(reference(run), nil, severity, is.Reason, "Account", "%s", is.Message)
	}
}
