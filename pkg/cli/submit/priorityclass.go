package submit

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lacksClass returns the PriorityClass that a Run names and the cluster does not have (R44); empty where it has it. Who
// may not read PriorityClasses learns it from the Run's condition.
func (s *submission) lacksClass(ctx context.Context, c client.Client, object *unstructured.Unstructured) string {
	class, _, _ := unstructured.NestedString(object.Object, "spec", "priorityClassName")
	if object.GetKind() != "Run" || class == "" || s.dryRun == "client" {
		return ""
	}
	err := c.Get(ctx, client.ObjectKey{Name: class}, &schedulingv1.PriorityClass{})
	if apierrors.IsNotFound(err) {
		return class
	}
	return ""
}

// noClass says so, and what mends it.
func noClass(object *unstructured.Unstructured, class string) string {
	return fmt.Sprintf("Run %s/%s: spec.priorityClassName is %s, and there is no PriorityClass of that name; name one of "+
		"\"kubectl get priorityclasses\", or have an administrator create it", object.GetNamespace(), object.GetName(), class)
}
