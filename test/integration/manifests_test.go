package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

const manifests = "../../manifests"

// kubectl runs kubectl as the administrator and fails the test unless it succeeds.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := apiServer(t).Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// removeDeployment takes the scheduler's Deployment away again after a test: nothing runs its pods here.
func removeDeployment(t *testing.T) {
	t.Cleanup(func() {
		stdout, stderr, err := apiServer(t).Kubectl(context.Background(), "delete", "--ignore-not-found", "-k",
			manifests+"/scheduler")
		if err != nil {
			t.Errorf("%v: %s%s", err, stdout, stderr)
		}
	})
}

// TestManifestsInstall applies the whole installation as it is documented, and again and again, as upgrades do, once
// the control plane has filled in what it fills in; also without --server-side.
func TestManifestsInstall(t *testing.T) {
	removeDeployment(t)
	for _, mode := range []string{"--server-side", "--server-side", "--server-side=false", "--server-side"} {
		if out := kubectl(t, "apply", mode, "-k", manifests); strings.Contains(out, "Warning") {
			t.Errorf("apply %s: %s", mode, out)
		}
		eventually(t, "the group reader's rules", func() error {
			rules := kubectl(t, "get", "clusterrole", "jobtree-group-reader", "-o", "jsonpath={.rules[*].resources}")
			if !strings.Contains(rules, "jobsets") {
				return fmt.Errorf("they are %q", rules)
			}
			return nil
		})
	}
	kubectl(t, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
	got := strings.Fields(kubectl(t, "get", "crd", "-o", `jsonpath={.items[*].metadata.name}`))
	want := []string{
		"budgets." + rqv1.GroupName, "leases." + rqv1.GroupName, "owners." + rqv1.GroupName, "reservations." + rqv1.GroupName,
		"runs." + rqv1.GroupName,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSchedulerPodIsRestricted creates a pod from the Deployment's template: its namespace enforces the restricted Pod
// Security Standard, which the Deployment itself is not held to.
func TestSchedulerPodIsRestricted(t *testing.T) {
	removeDeployment(t)
	kubectl(t, "apply", "--server-side", "-k", manifests)
	template := kubectl(t, "get", "deployment", "-n", controlplane.Namespace, "jobtree-scheduler", "-o",
		`jsonpath={.spec.template}`)
	pod := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "` + controlplane.Namespace +
		`"}, ` +
		template[strings.Index(template, `"spec"`):]
	_, stderr, err := apiServer(t).KubectlStdin(t.Context(), strings.NewReader(pod), "create", "--dry-run=server", "-f",
		"-")
	if err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}

// TestLocalAndInstalledSchedulerShareTheirConfig compares the file that local schedulers run with, with the ConfigMap.
func TestLocalAndInstalledSchedulerShareTheirConfig(t *testing.T) {
	local, err := os.ReadFile(filepath.Join(manifests, "scheduler", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for object := range strings.SplitSeq(kubectl(t, "kustomize", manifests), "\n---\n") {
		var config corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(object), &config); err != nil {
			t.Fatal(err)
		}
		if config.Kind != "ConfigMap" || config.Data["config.yaml"] == "" {
			continue
		}
		if diff := cmp.Diff(map[string]string{"config.yaml": string(local)}, config.Data); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("no ConfigMap with the configuration is installed")
}

// right is a verb on a resource, in the form of the scheduler's needs.
type right struct{ verb, group, resource, namespace, name string }

func TestSchedulerHasTheRightsItNeedsAndNoMore(t *testing.T) {
	const anywhere, rq = "", rqv1.GroupName
	may := []right{
		{"list", rq, "runs", anywhere, ""}, {"watch", rq, "budgets", anywhere, ""},
		{"update", rq, "runs/status", "team", "run"}, {"patch", rq, "budgets/status", anywhere, "b"},
		{"create", rq, "leases", "team", ""}, {"update", rq, "leases/status", "team", "l"},
		{"delete", rq, "leases", "team", "l"}, {"delete", rq, "runs", "team", "run"},
		{"create", rq, "runs", "team", ""},
		{"create", rq, "reservations", "team", ""}, {"patch", rq, "reservations/status", "team", "r"},
		{"create", "", "pods", "team", ""}, {"delete", "", "pods", "team", "p"}, {"patch", "", "pods", "team", "p"},
		{"create", "", "pods/binding", "team", "p"}, {"patch", "", "pods/status", "team", "p"},
		{"create", "", "services", "team", ""}, {"delete", "", "services", "team", "s"},
		{"create", "events.k8s.io", "events", "team", ""}, {"watch", "", "nodes", anywhere, ""},
		{"patch", "", "nodes", anywhere, "n"},
		{"watch", "coordination.k8s.io", "leases", "kube-node-lease", ""},
		{"watch", "", "namespaces", anywhere, ""}, {"watch", "storage.k8s.io", "csinodes", anywhere, ""},
		{"create", "coordination.k8s.io", "leases", controlplane.Namespace, ""},
		{"update", "coordination.k8s.io", "leases", controlplane.Namespace, controlplane.SchedulerLease},
		{"get", "", "configmaps", "kube-system", "extension-apiserver-authentication"},
		{"create", "authentication.k8s.io", "tokenreviews", anywhere, ""},
	}
	mayNot := []right{
		{"delete", "", "nodes", anywhere, "n"}, {"create", "", "nodes", anywhere, ""}, {"update", "", "nodes", anywhere, "n"},
		{"patch", "", "nodes/status", anywhere, "n"},
		{"get", "", "secrets", "team", "s"}, {"list", "", "secrets", anywhere, ""}, {"get", "", "configmaps", "team", "c"},
		{"update", rq, "runs", "team", "run"}, {"deletecollection", rq, "runs", "team", ""},
		{"create", rq, "budgets", anywhere, ""}, {"update", rq, "budgets", anywhere, "b"},
		{"create", "", "pods/exec", "team", "p"}, {"update", "", "services", "team", "s"},
		{"deletecollection", "", "pods", "team", ""},
		{"update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"},
		{"update", "coordination.k8s.io", "leases", "kube-node-lease", "n"},
		{"create", "", "serviceaccounts/token", controlplane.Namespace, controlplane.SchedulerAccount},
		{"escalate", "rbac.authorization.k8s.io", "clusterroles", anywhere, "jobtree-scheduler"},
		{"impersonate", "", "users", anywhere, "admin"},
	}
	client, err := kubernetes.NewForConfig(apiServer(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	for want, rights := range map[bool][]right{true: may, false: mayNot} {
		for _, r := range rights {
			if got := allowed(t, client, r); got != want {
				t.Errorf("%+v: allowed %v, want %v", r, got, want)
			}
		}
	}
}

// allowed asks the API server whether the scheduler's service account has a right.
func allowed(t *testing.T, client kubernetes.Interface, r right) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + controlplane.Namespace + ":" + controlplane.SchedulerAccount,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + controlplane.Namespace,
			"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Namespace: r.namespace, Name: r.name,
		},
	}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}
