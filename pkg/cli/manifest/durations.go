package manifest

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// inHours writes a Run's durations in days and weeks, which the API does not take, in hours. Others stay as they are.
func inHours(object *unstructured.Unstructured) {
	if object.GroupVersionKind() != rqv1.GroupVersion.WithKind("Run") {
		return
	}
	for _, field := range []string{"checkpoint", "maxDuration", "startupDeadline"} {
		path := []string{"spec", "runtime", field}
		text, found, err := unstructured.NestedString(object.Object, path...)
		if !found || err != nil {
			continue
		}
		if _, err := time.ParseDuration(text); err == nil {
			continue
		}
		if d, err := rqv1.ParseDuration(text); err == nil {
			_ = unstructured.SetNestedField(object.Object, d.String(), path...) // it was there
		}
	}
}
