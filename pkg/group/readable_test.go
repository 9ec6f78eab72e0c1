package group

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestWhatIsKnownToBeRead is what the scheduler is installed with.
func TestWhatIsKnownToBeRead(t *testing.T) {
	text, err := os.ReadFile("../../manifests/rbac/groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var installed, known []string
	list := func(rules []rbacv1.PolicyRule) (out []string) {
		for _, r := range rules {
			for _, api := range r.APIGroups {
				for _, of := range r.Resources {
					out = append(out, strings.Join(r.Verbs, ",")+" "+of+"."+api)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			installed = append(installed, list(role.Rules)...)
		}
	}
	known = list(knownRules)
	if diff := cmp.Diff(installed, known, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what is installed, and what is known (-installed +known):\n%s", diff)
	}
	for key, want := range map[Key]bool{{API: "batch", Kind: "CronJob"}: true, {Kind: "Pod"}: true,
		{API: "ray.io", Kind: "RayService"}: true, {API: "example.com", Kind: "Farm"}: false,
		{API: "batch", Kind: "Farm"}: false} {
		if got := ReadsKnown(key); got != want {
			t.Errorf("%v: %v", key, got)
		}
	}
}
