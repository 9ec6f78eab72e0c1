package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// setPriority says what priority and place the Run has among those of its owner (R44), and whether its PriorityClass
// is missing.
func setPriority(c conditions, s *situation) {
	f := s.facts
	name := f.Run.Spec.PriorityClassName
	c.next.Priority, c.next.PlaceSince = nil, nil
	if f.PlaceSince != nil {
		c.next.PlaceSince = &metav1.Time{Time: *f.PlaceSince}
	}
	if name != "" {
		c.next.Priority = &f.Priority.Value
	}
	var missing *saying
	if f.Priority.Missing && !s.hasEnded() {
		missing = &saying{"NotFound", fmt.Sprintf("spec.priorityClassName is %s, and there is no PriorityClass of that "+
			"name: the Run has priority 0 among its owner's Runs; ask an administrator to create the class, or name one that "+
			"kubectl get priorityclasses lists", name)}
	}
	c.raise(rqv1.ConditionPriorityClassMissing, missing, saying{"Found", "the PriorityClass of the Run, if it names " +
		"one, exists"})
}
