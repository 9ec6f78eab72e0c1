package view

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// PriorityOf says what priority a Run has among those of its owner; empty for a Run that names no PriorityClass.
func PriorityOf(run *rqv1.Run) string {
	if run.Spec.PriorityClassName == "" {
		return ""
	}
	return Priority(run.Spec.PriorityClassName, run.Status.Priority)
}

// Priority says what a PriorityClass is worth, if the scheduler has looked.
func Priority(class string, value *int32) string {
	if value == nil {
		return class
	}
	return fmt.Sprintf("%d (%s)", *value, class)
}
