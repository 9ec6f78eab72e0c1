package reconcile

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/news"
)

// NewsOf returns what events are to tell of a Run, as it is read, whose status is written: a new phase or message, that
// it comes into overdraft or into risk, or out of them, and that shards give way.
func NewsOf(run *rqv1.Run, status *rqv1.RunStatus) (out []news.Fact) {
	for _, kind := range []string{rqv1.ConditionOverdraft, rqv1.ConditionAtRisk, rqv1.ConditionReclaimed,
		rqv1.ConditionGraceCapped, rqv1.ConditionNodesHeldBack, rqv1.ConditionSaveIgnored} {
		is := meta.FindStatusCondition(status.Conditions, kind)
		was := meta.FindStatusCondition(run.Status.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Message == is.Message {
			continue
		}
		severity := corev1.EventTypeNormal
		if is.Status == metav1.ConditionTrue {
			severity = corev1.EventTypeWarning
		}
		out = append(out, news.Fact{Type: severity, Reason: is.Reason, Action: "Account", Note: is.Message})
	}
	if run.Status.Phase == status.Phase && run.Status.Message == status.Message || plain(run, status) {
		return out
	}
	severity := corev1.EventTypeNormal
	if status.Phase == rqv1.RunFailed {
		severity = corev1.EventTypeWarning
	}
	return append(out, news.Fact{Type: severity, Reason: string(status.Phase), Action: "Reconcile", Note: status.Message})
}

// plain reports whether all that a status tells is that the Run has started, or completed: its conditions say so too,
// and when. A Run that fares as it should is to cost six writes, not eight. Shards start one by one, and it is told
// what the others wait for.
func plain(run *rqv1.Run, status *rqv1.RunStatus) bool {
	if status.Phase == rqv1.RunRunning && run.Status.Phase != rqv1.RunRunning {
		started := meta.FindStatusCondition(status.Conditions, rqv1.ConditionStarted)
		return started != nil && started.Reason == "Started" && !run.Spec.Opportunistic
	}
	return status.Phase == rqv1.RunCompleted
}
