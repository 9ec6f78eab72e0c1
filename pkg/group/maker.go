package group

import (
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
	if kind := KeyOfObject(maker); kind.API == "batch" && kind.Kind == "Job" {
		most := int64(1)
		if n, said, _ := unstructured.NestedInt64(maker, "spec", "parallelism"); said {
			most = n
		}
		if n, said, _ := unstructured.NestedInt64(maker, "spec", "completions"); said {
			done, _, _ := unstructured.NestedInt64(maker, "status", "succeeded")
			most = min(most, n-done)
		}
		return int(max(0, most)), true
	}
	switch KeyOfObject(maker).Kind {
	case "ReplicaSet", "StatefulSet", "ReplicationController":
		n, said, _ := unstructured.NestedInt64(maker, "spec", "replicas")
		if !said {
			n = 1
		}
		return int(max(0, n)), true
	}
	return 0, false
}
