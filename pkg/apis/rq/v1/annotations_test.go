package v1_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// The policy for pods admits the annotations that the code knows as users' own, and no others.
func TestThePolicyListsTheAnnotationsOfUsers(t *testing.T) {
	data, err := os.ReadFile("../../../../manifests/policy/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Spec struct {
			Variables []struct{ Name, Expression string }
		}
	}
	if err := yaml.Unmarshal([]byte(strings.SplitN(string(data), "\n---\n", 2)[0]), &policy); err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for _, v := range policy.Spec.Variables {
		for _, match := range regexp.MustCompile(`'(`+rqv1.GroupName+`/[a-z-]+)'`).FindAllStringSubmatch(v.Expression, -1) {
			listed[v.Name] = append(listed[v.Name], match[1])
		}
	}
	want := map[string][]string{"atFirst": rqv1.AnnotationsAtFirst, "anytime": rqv1.AnnotationsAnytime}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("manifests/policy/pods.yaml differs from the list in annotations.go (-code +policy):\n%s", diff)
	}
}
