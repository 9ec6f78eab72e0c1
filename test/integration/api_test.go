package integration

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// apiCases is one file of testdata/api: objects and patches, and what the API server says to them.
type apiCases struct {
	// As is the user who acts unless a case or step says otherwise. Default: admin.
	As string `json:"as"`
	// Base is the object into which the cases are merged.
	Base map[string]any `json:"base"`
	// Ready makes an object that an admission policy refuses mallory, which shows that the policy is in force.
	Ready map[string]any `json:"ready"`
	Cases []struct {
		Name   string         `json:"name"`
		As     string         `json:"as"`
		Create map[string]any `json:"create"`
		Error  string         `json:"error"`
		Then   []apiStep      `json:"then"`
	} `json:"cases"`
}

// apiStep is one patch of an object, or of a subresource of it.
type apiStep struct {
	As          string         `json:"as"`
	Subresource string         `json:"subresource"`
	Patch       map[string]any `json:"patch"`
	Error       string         `json:"error"`
}

// users are whom the cases name. Mallory has every right that RBAC gives, so that only the policies stop her.
var users = map[string]rest.ImpersonationConfig{
	"admin":   {},
	"mallory": {UserName: "mallory", Groups: []string{"system:authenticated", "everything"}},
	"scheduler": {UserName: "system:serviceaccount:jobtree-system:jobtree-scheduler",
		Groups: []string{"system:serviceaccounts"}},
	// Nobody else but the scheduler may delete Leases and Reservations.
	"collector": {UserName: "system:serviceaccount:kube-system:generic-garbage-collector",
		Groups: []string{"system:serviceaccounts"}},
}

func TestAPI(t *testing.T) {
	files, err := filepath.Glob("testdata/api/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	clients := apiClients(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			var cases apiCases
			readYAML(t, file, &cases)
			cases.waitReady(t, clients)
			for _, c := range cases.Cases {
				t.Run(c.Name, func(t *testing.T) {
					object := merged(cases.Base, c.Create)
					by := clients[first(c.As, cases.As, "admin")]
					err := by.Create(t.Context(), object, client.FieldValidation("Strict"))
					if err == nil {
						t.Cleanup(func() { remove(t, clients["collector"], object) })
					}
					expect(t, "create", err, c.Error)
					for _, step := range c.Then {
						step.run(t, clients[first(step.As, c.As, cases.As, "admin")], object)
					}
				})
			}
		})
	}
}

// apiClients returns a client for each user.
func apiClients(t *testing.T) map[string]client.Client {
	t.Helper()
	config := apiServer(t).AdminConfig()
	clients := map[string]client.Client{}
	for name, user := range users {
		as := rest.CopyConfig(config)
		as.Impersonate = user
		c, err := client.New(as, client.Options{Scheme: runtime.NewScheme()})
		if err != nil {
			t.Fatal(err)
		}
		clients[name] = c
	}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": "everything"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "everything"}},
	}}
	if err := clients["admin"].Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, clients["admin"], binding) })
	return clients
}

// waitReady returns once the policy that the file exercises is in force, which is some time after it was applied.
func (cases apiCases) waitReady(t *testing.T, clients map[string]client.Client) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			last = clients["mallory"].Create(ctx, merged(cases.Base, cases.Ready), client.DryRunAll)
			return last != nil && strings.Contains(last.Error(), "ValidatingAdmissionPolicy"), nil
		})
	if err != nil {
		t.Fatalf("no policy refuses the object: %v; the last answer was: %v", err, last)
	}
}

func (step apiStep) run(t *testing.T, by client.Client, object *unstructured.Unstructured) {
	t.Helper()
	target := object.DeepCopy()
	data, err := json.Marshal(step.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, data)
	switch step.Subresource {
	case "":
		err = by.Patch(t.Context(), target, patch)
	case "binding":
		binding := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(step.Patch)}
		binding.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Binding"})
		err = by.SubResource("binding").Create(t.Context(), target, binding)
	default:
		err = by.SubResource(step.Subresource).Patch(t.Context(), target, patch)
	}
	expect(t, step.Subresource+" "+string(data), err, step.Error)
}

// expect checks an answer: want is a part of the error, or empty for success.
func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && err == nil:
		t.Errorf("%s was accepted, want: %s", what, want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("%s:\n got: %v\nwant: %s", what, err, want)
	}
}

// merged returns a copy of base with a JSON merge patch applied.
func merged(base, patch map[string]any) *unstructured.Unstructured {
	object := runtime.DeepCopyJSON(base)
	merge(object, runtime.DeepCopyJSON(patch))
	return &unstructured.Unstructured{Object: object}
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		change, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, change)
		default:
			into[key] = value
		}
	}
}

func remove(t *testing.T, by client.Client, object client.Object) {
	t.Helper()
	if err := by.Delete(context.WithoutCancel(t.Context()), object,
		client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Errorf("delete %s: %v", object.GetName(), err)
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// first returns the first of names that is not empty.
func first(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return ""
}

// TestClientSideApply shows that the CustomResourceDefinitions fit the annotation of `kubectl apply`.
func TestClientSideApply(t *testing.T) {
	for _, dir := range []string{"crd", "policy"} {
		_, stderr, err := apiServer(t).Kubectl(t.Context(), "apply", "--dry-run=server", "-k",
			filepath.Join("..", "..", "manifests", dir))
		if err != nil {
			t.Errorf("kubectl apply -k manifests/%s: %v: %s", dir, err, stderr)
		}
	}
}
