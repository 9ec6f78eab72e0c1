package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func text(t *testing.T, name, namespace string) string {
	return clitest.Text(t, &rqv1.Run{TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: rqv1.RunSpec{Owner: "org:ai:rai",
			Resources: rqv1.RunResources{GPUType: "H100-80GB", TotalGPUs: 8}}})
}

// ofClass is a Run with a PriorityClass.
func ofClass(t *testing.T, name, class string) string {
	return strings.Replace(text(t, name, ""), "spec:\n", "spec:\n  priorityClassName: "+class+"\n", 1)
}

// TestSubmit writes files as users do, and looks at what the API server holds afterwards.
func TestSubmit(t *testing.T) {
	for name, c := range map[string]struct {
		file   []string // documents
		args   string
		code   int
		stored string
		told   []string
	}{
		"a Run": {file: []string{text(t, "a", "")}, stored: "a",
			told: []string{"run.rq.davidlangworthy.io/a created", "Follow with: kubectl runs watch -n rai a"}},
		"two": {file: []string{text(t, "a", ""), text(t, "b", "rai")}, stored: "a b",
			told: []string{"Follow with: kubectl runs watch -n rai a b"}},
		"names for a script": {file: []string{text(t, "a", "")}, args: "-o name", stored: "a",
			told: []string{"run.rq.davidlangworthy.io/a\n"}},
		"to see whether it would be": {file: []string{text(t, "a", "")}, args: "--dry-run server",
			told: []string{"created (server dry run)"}},
		"to see whether it is well": {file: []string{text(t, "a", "")}, args: "--dry-run client",
			told: []string{"created (dry run)"}},
		"one that is there already": {file: []string{text(t, "taken", ""), text(t, "b", "")}, code: session.ExitError,
			stored: "b", told: []string{"taken", "exists", "run.rq.davidlangworthy.io/b created"}},
		"one that may not be": {file: []string{text(t, "forbidden", ""), text(t, "b", "")}, code: session.ExitError,
			stored: "b", told: []string{`cannot create resource "runs"`}},
		"a second that is no YAML": {file: []string{text(t, "a", ""), "kind: [\n"}, code: session.ExitError,
			told: []string{"runs.yaml"}},
		"a field that there is not": {file: []string{strings.Replace(text(t, "a", ""), "totalGPUs", "totalGpus", 1)},
			code: session.ExitError, told: []string{"totalGpus"}},
		"for another namespace": {file: []string{text(t, "a", "mm")}, code: session.ExitError,
			told: []string{"mm", "rai"}},
		"of a PriorityClass": {file: []string{ofClass(t, "a", "high"), ofClass(t, "b", "nowhere")}, code: session.ExitError,
			stored: "a", told: []string{"Run rai/b: spec.priorityClassName is nowhere", "kubectl get priorityclasses"}},
		"of a PriorityClass that may not be read": {file: []string{ofClass(t, "a", "unread")}, stored: "a"},
		"nothing": {file: []string{""}, code: session.ExitError},
	} {
		taken := clitest.RunOf("taken", 8, 0, clitest.Runs(8))
		server := clitest.NewServer(t, &taken, &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{
			APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 2})
		creates := 0
		server.Before = func(request string) error {
			if request == "get priorityclasses/unread" {
				return clitest.Forbidden("get", "priorityclasses")
			}
			if !strings.HasPrefix(request, "create runs") {
				return nil
			}
			if creates++; name == "one that may not be" && creates == 1 {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "runs"}, "forbidden",
					clitest.Forbidden("create", "runs"))
			}
			return nil
		}
		path := filepath.Join(t.TempDir(), "runs.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(c.file, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		said := clitest.Do(t, server, Command, append(strings.Fields(c.args), "--wait=0s", "-f", path)...)
		if said.Code != c.code {
			t.Errorf("%s: code %d, want %d: %+v", name, said.Code, c.code, said)
		}
		for _, want := range c.told {
			if !strings.Contains(said.Out+said.Err, want) {
				t.Errorf("%s: lacks %q: %+v", name, want, said)
			}
		}
		first := clitest.RunOf("a", 8, 0, rqv1.RunStatus{})
		if who := server.Get(&first, "spec", "submitter"); strings.HasPrefix(c.stored, "a") && who != "ada" {
			t.Errorf("%s: %q has submitted it", name, who)
		}
		var stored []string
		for _, run := range []string{"a", "b", "forbidden"} {
			object := clitest.RunOf(run, 8, 0, rqv1.RunStatus{})
			if server.Get(&object, "metadata", "name") != "" {
				stored = append(stored, run)
			}
		}
		if got := strings.Join(stored, " "); got != c.stored {
			t.Errorf("%s: %q are there, want %q", name, got, c.stored)
		}
	}
}
