package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// The built-in roles hold what Runs need, in a namespace, and none of them lets anybody spend.
func TestRolesOfPeople(t *testing.T) {
	const anywhere, rq = "", rqv1.GroupName
	sampleTeams(t)
	vic, ada, bea := person("vic"), person("ada"), person("bea")
	bindRole(t, "vic", "rai", "ClusterRole", "view")
	bindRole(t, "ada", "rai", "ClusterRole", "admin")
	bindEverywhere(t, "bea", "jobtree-budget-admin")
	waitAllowed(t, vic, access{"get", rq, "runs", "rai", "run"})
	waitAllowed(t, ada, access{"create", rq, "runs", "rai", ""})
	waitAllowed(t, bea, access{"create", rq, "budgets", anywhere, ""})
	nobody := person("nobody")
	for _, c := range []struct {
		as   rest.ImpersonationConfig
		do   access
		want bool
	}{
		{ann, access{"delete", rq, "runs", "rai", "run"}, true},
		{ann, access{"deletecollection", rq, "runs", "rai", ""}, true},
		{ann, access{"list", rq, "leases", "rai", ""}, true},
		{ann, access{"watch", rq, "reservations", "rai", ""}, true},
		{ann, access{"use", rq, "owners", "rai", "org:ai:rai"}, true},
		{ann, access{"use", rq, "owners", "rai", "org:ai:mm"}, false},
		{ann, access{"use", rq, "owners", "mm", "org:ai:rai"}, false},
		{ann, access{"use", rq, "owners", "rai", ""}, false},
		{ann, access{"create", rq, "runs", "mm", ""}, false},
		{ann, access{"update", rq, "runs/status", "rai", "run"}, false},
		{ann, access{"create", rq, "leases", "rai", ""}, false},
		{ann, access{"delete", rq, "leases", "rai", "l"}, false},
		{ann, access{"patch", rq, "leases/status", "rai", "l"}, false},
		{ann, access{"patch", rq, "reservations", "rai", "r"}, false},
		{dan, access{"use", rq, "owners", "rai", "org:ai:rai"}, false},
		{ada, access{"use", rq, "owners", "rai", "org:ai:rai"}, false},
		{ada, access{"list", rq, "leases", "rai", ""}, true},
		{ada, access{"update", rq, "budgets", anywhere, "rai"}, false},
		{vic, access{"list", rq, "leases", "rai", ""}, true},
		{vic, access{"create", rq, "runs", "rai", ""}, false},
		{vic, access{"delete", rq, "runs", "rai", "run"}, false},
		{nobody, access{"list", rq, "budgets", anywhere, ""}, true},
		{nobody, access{"create", rq, "budgets", anywhere, ""}, false},
		{nobody, access{"list", rq, "reservations", anywhere, ""}, true},
		{nobody, access{"get", rq, "reservations", "rai", "r"}, true},
		{nobody, access{"create", rq, "reservations", "rai", ""}, false},
		{nobody, access{"get", "", "configmaps", "jobtree-system", "jobtree-public"}, true},
		{nobody, access{"list", "scheduling.k8s.io", "priorityclasses", anywhere, ""}, true},
		{nobody, access{"create", "scheduling.k8s.io", "priorityclasses", anywhere, ""}, false},
		{nobody, access{"update", "", "configmaps", "jobtree-system", "jobtree-public"}, false},
		{nobody, access{"get", "", "configmaps", "jobtree-system", "jobtree-cuts"}, false},
		{nobody, access{"list", "", "configmaps", "jobtree-system", ""}, false},
		{nobody, access{"list", rq, "leases", "rai", ""}, false},
		{nobody, access{"list", rq, "runs", "rai", ""}, false},
		{bea, access{"patch", rq, "budgets", anywhere, "b"}, true},
		{bea, access{"patch", rq, "budgets/status", anywhere, "b"}, false},
	} {
		if got := isAllowed(t, c.as, c.do); got != c.want {
			t.Errorf("%s: %+v: allowed %v, want %v", c.as.UserName, c.do, got, c.want)
		}
	}
}

// People ask with kubectl's own command where they stand, without a warning that there is no such resource.
func TestAuthCanI(t *testing.T) {
	sampleTeams(t)
	for _, c := range []struct{ what, namespace, want string }{
		{"owners.rq.davidlangworthy.io/org:ai:rai", "rai", "yes"},
		{"owners/org:ai:rai", "rai", "yes"},
		{"owners.rq.davidlangworthy.io/org:ai:mm", "rai", "no"},
		{"owners.rq.davidlangworthy.io/org:ai:rai:sys", "rai", "no"},
		{"owners.rq.davidlangworthy.io/org:ai:rai", "mm", "no"},
		{"owners.rq.davidlangworthy.io", "rai", "no"},
	} {
		stdout, stderr, err := apiServer(t).Kubectl(t.Context(), "auth", "can-i", "use", c.what, "-n", c.namespace,
			"--as=ann", "--as-group=rai")
		if got := strings.TrimSpace(stdout); got != c.want || stderr != "" || (err == nil) != (c.want == "yes") {
			t.Errorf("use %s in %s: %s, want %s: %v: %s", c.what, c.namespace, got, c.want, err, stderr)
		}
	}
	list := kubectl(t, "auth", "can-i", "--list", "-n", "rai", "--as=ann", "--as-group=rai")
	if !strings.Contains(list, "owners.rq.davidlangworthy.io") || !strings.Contains(list, "[org:ai:rai]") {
		t.Errorf("the list holds no owner:\n%s", list)
	}
}

// An owner is a name in roles: there are no objects of the kind to mistake for one.
func TestOwnersAreNoObjects(t *testing.T) {
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Owner"))
	owner.SetNamespace(metav1.NamespaceDefault)
	owner.SetName("org")
	expect(t, "create", actAs(t, mallory).Create(t.Context(), owner), "an owner is a name, not an object")
}
