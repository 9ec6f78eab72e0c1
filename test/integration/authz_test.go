package integration

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// mallory has every right that RBAC gives, so that only admission policies stop her.
var mallory = rest.ImpersonationConfig{UserName: "mallory", Groups: []string{"system:masters"}}

// scheduler is the scheduler's service account with every right, as an administrator impersonates it.
var scheduler = rest.ImpersonationConfig{
	UserName: "system:serviceaccount:jobtree-system:jobtree-scheduler", Groups: []string{"system:masters"},
}

// schedulerAccount is the scheduler's service account with the rights that it has.
var schedulerAccount = person(scheduler.UserName, "system:serviceaccounts", "system:serviceaccounts:jobtree-system")

// actAs is a client of the control plane without scheduler that acts as a user.
func actAs(t *testing.T, user rest.ImpersonationConfig) client.Client {
	t.Helper()
	config := apiServer(t).AdminConfig()
	config.Impersonate = user
	scheme := runtime.NewScheme()
	err := errors.Join(rqv1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// person is a user in groups, one who has logged in.
func person(name string, groups ...string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
}

// sampleTeams applies the sample namespaces and teams and returns once RBAC knows of them.
func sampleTeams(t *testing.T) {
	t.Helper()
	samples := filepath.Join(manifests, "samples")
	kubectl(t, "apply", "--server-side", "-f", filepath.Join(samples, "namespaces.yaml"), "-f",
		filepath.Join(samples, "teams.yaml"))
	for _, team := range []string{"rai", "mm"} {
		waitAllowed(t, person("somebody", team), access{"use", rqv1.GroupName, "owners", team, "org:ai:" + team})
		waitAllowed(t, person("somebody", team), access{"create", rqv1.GroupName, "runs", team, ""})
	}
}

// makeNamespace creates a namespace for a test and deletes it when the test ends.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	install(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// access is a request that somebody may or may not make.
type access struct{ verb, group, resource, namespace, name string }

// isAllowed asks the API server whether RBAC lets a user make a request.
func isAllowed(t *testing.T, user rest.ImpersonationConfig, a access) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(a.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.UserName, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: resource, Subresource: subresource, Namespace: a.namespace, Name: a.name,
		},
	}}
	if err := actAs(t, rest.ImpersonationConfig{}).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// waitAllowed returns once the authorizer, which watches roles, has seen the one that allows a request.
func waitAllowed(t *testing.T, user rest.ImpersonationConfig, a access) {
	t.Helper()
	eventually(t, "RBAC", func() error {
		if !isAllowed(t, user, a) {
			return errors.New(user.UserName + " may not " + a.verb + " " + a.resource + " " + a.name + " in " + a.namespace)
		}
		return nil
	})
}

// bindRole lets a user do in a namespace what a ClusterRole or, with kind Role, a Role allows, until the test ends.
func bindRole(t *testing.T, user, namespace, kind, role string) {
	t.Helper()
	install(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// bindEverywhere lets a user do what a ClusterRole allows in all namespaces, until the test ends.
func bindEverywhere(t *testing.T, user, role string) {
	t.Helper()
	install(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// install creates objects as the administrator and deletes them when the test ends.
func install(t *testing.T, objects ...client.Object) {
	t.Helper()
	admin := actAs(t, rest.ImpersonationConfig{})
	for _, object := range objects {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, admin, object) })
	}
}

// policyEnforced returns once a policy refuses what it must: it is in force some time after it was applied.
func policyEnforced(t *testing.T, policy string, try func() error) {
	t.Helper()
	eventually(t, "the policy "+policy, func() error {
		err := try()
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'") {
			return errors.Join(errors.New("it refuses nothing"), err)
		}
		return nil
	})
}

// refused checks that an answer is 403 and says all of want.
func refused(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s was accepted", what)
		return
	}
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s is not refused as forbidden: %v", what, err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s:\n got: %v\nwant: %s", what, err, part)
		}
	}
}
