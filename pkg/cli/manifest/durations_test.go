package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Run's days and weeks are written in hours; what the API takes, and what is no duration, stays as it is.
func TestDaysAreWrittenInHours(t *testing.T) {
	for text, want := range map[string]string{"3d": "72h0m0s", "1w12h": "180h0m0s", "90m": "90m", "two days": "two days"} {
		objects, err := Decode(document{text: []byte(`apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata: {name: train}
spec: {owner: org:ai:mm, resources: {gpuType: H100-80GB, totalGPUs: 8}, runtime: {maxDuration: ` + text + `}}
`)})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, _, _ := unstructured.NestedString(objects[0].Object, "spec", "runtime", "maxDuration")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
