package group

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Asked returns how many pods a controller makes sure that there are beside those that have succeeded, by its object;
// false where its kind does not say. One that is suspended, has ended or is about to go asks for none.
func Asked(maker map[string]any) (pods int, says bool) {
	if maker == nil {
		return 0, false
	}
	object := &unstructured.Unstructured{Object: maker}
	if object.GetDeletionTimestamp() != nil || End(maker) != "" || Suspended(maker) != "" {
		return 0, true
	}
	switch kind := KeyOfObject(maker); {
	case kind.API == "batch" && kind.Kind == "Job":
		most := numberOr(maker, 1, "spec", "parallelism")
		if n, said, _ := unstructured.NestedInt64(maker, "spec", "completions"); said {
			most = min(most, n-numberOr(maker, 0, "status", "succeeded"))
		}
		return int(max(0, most)), true
	case slices.Contains([]string{"ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"}, kind.Kind):
		return int(max(0, numberOr(maker, 1, "spec", "replicas"))), true
	}
	return 0, false
}

// OfOneTemplate reports whether a controller makes pods of one template for what controls it, which makes another such
// for the next template.
func OfOneTemplate(by *metav1.OwnerReference) bool {
	return by.Kind == "ReplicaSet" || by.Kind == "ReplicationController"
}

// numberOr returns a number of an object; another where it does not say any.
func numberOr(object map[string]any, other int64, path ...string) int64 {
	if n, said, _ := unstructured.NestedInt64(object, path...); said {
		return n
	}
	return other
}
