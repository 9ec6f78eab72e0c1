package controllers

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestAFirstPodNeedsNoListOfLeases: the API server would go through all Leases of the namespace, closed ones too, for a
// Run that has had none, whether it starts at once or has said that it waits.
func TestAFirstPodNeedsNoListOfLeases(t *testing.T) {
	for name, conditions := range map[string][]metav1.Condition{
		"at once": nil,
		"after it was refused": {{Type: rqv1.ConditionStarted, Status: metav1.ConditionFalse, Reason: "InsufficientBudget",
			Message: "budget of o is short by 16 of 16 GPUs", LastTransitionTime: metav1.NewTime(noon)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit(func(run *rqv1.Run) { run.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour)) })
			run := c.run()
			run.Status.Phase, run.Status.Conditions = rqv1.RunPending, conditions
			if err := c.kinds.Status().Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			c.see()
			c.written()
			listed := errors.New("all Leases of the namespace are gone through")
			c.mu.Lock()
			c.faults = []fault{{on: "list others", err: listed}}
			c.mu.Unlock()
			if _, err := c.reconcile(t.Context(), train); errors.Is(err, listed) {
				t.Error(err)
			}
		})
	}
}
