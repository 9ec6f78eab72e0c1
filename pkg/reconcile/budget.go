package reconcile

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// longestMessage is how many characters the API allows the message of a condition.
const longestMessage = 32768

// BudgetConditions returns the conditions of a Budget, from what is overdrawn and from its family.
func BudgetConditions(b *rqv1.Budget, report book.BudgetReport, now time.Time) []metav1.Condition {
	overdrawn := metav1.Condition{Type: rqv1.ConditionOverdrawn, Status: metav1.ConditionFalse, Reason: "WithinLimits",
		Message: "nothing is held beyond what the Budget allows"}
	if len(report.Overdrafts) > 0 {
		var where []string
		for _, o := range report.Overdrafts {
			where = append(where, fmt.Sprintf("%s: %d GPUs (%s)", o.Key.Envelope, o.GPUs, o.Cause))
		}
		overdrawn.Status, overdrawn.Reason = metav1.ConditionTrue, string(report.Overdrafts[0].Cause)
		overdrawn.Message = strings.Join(where, "; ") + ": no Run is stopped, and these GPUs count against every cap " +
			"until they are released"
	}
	circular := metav1.Condition{Type: rqv1.ConditionCircular, Status: metav1.ConditionFalse, Reason: "NoCircle",
		Message: "no owner is its own ancestor"}
	if len(report.Circle) > 0 {
		circular.Status, circular.Reason = metav1.ConditionTrue, "CircleOfParents"
		circular.Message = fmt.Sprintf("spec.parents makes %s an ancestor of itself through %v; jobtree ignores the "+
			"parents in this circle until one of them is removed",
			b.Spec.Owner, report.Circle)
	}
	out := b.Status.Conditions
	for _, condition := range []metav1.Condition{overdrawn, circular} {
		old := meta.FindStatusCondition(out, condition.Type)
		if old == nil && condition.Status == metav1.ConditionFalse {
			continue // it never was otherwise
		}
		condition.ObservedGeneration = b.Generation
		condition.Message = lifecycle.Shortened(condition.Message, longestMessage)
		if old == nil || old.Status != condition.Status {
			condition.LastTransitionTime = metav1.NewTime(now)
		}
		meta.SetStatusCondition(&out, condition)
	}
	return out
}
