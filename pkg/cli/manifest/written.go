package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// Written is a Run as somebody would write it: without what the API server fills in, and without what says nothing.
func Written(run *rqv1.Run) (*unstructured.Unstructured, error) {
	object, err := session.AsWritten(run)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	template, _, _ := unstructured.NestedMap(object.Object, "spec", "template")
	if template == nil {
		return object, nil
	}
	delete(template, "metadata")
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	for _, c := range containers {
		container, isMap := c.(map[string]any)
		if isMap && run.Spec.Template.Spec.Containers[0].Resources.Requests == nil {
			delete(container, "resources")
		}
	}
	if err := unstructured.SetNestedSlice(template, containers, "spec", "containers"); err != nil {
		return nil, err
	}
	return object, unstructured.SetNestedMap(object.Object, template, "spec", "template")
}
