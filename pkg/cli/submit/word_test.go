package submit

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// fileOf writes a file.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// scheduled is an API server whose scheduler decides about a Run when it is looked at for the second time.
func scheduled(t *testing.T, status rqv1.RunStatus, objects ...client.Object) *clitest.Server {
	server, looks := clitest.NewServer(t, objects...), 0
	server.Before = func(request string) error {
		if request == "get runs/a" {
			if looks++; looks == 2 {
				run := clitest.RunOf("a", 8, 0, status)
				server.Set(&run)
			}
		}
		return nil
	}
	return server
}

// The first word of the scheduler follows a submission.
func TestTheFirstWord(t *testing.T) {
	dated := clitest.Waits("InsufficientGPUs", "short by 8 GPUs")
	dated.EarliestStart = clitest.Ptr(clitest.After(90 * time.Minute))
	failed := rqv1.RunStatus{Phase: rqv1.RunFailed, ObservedGeneration: 1, Message: "it failed"}
	for name, c := range map[string]struct {
		status rqv1.RunStatus
		args   string
		want   string
	}{
		"it runs": {clitest.Runs(8), "--wait 10s", "Run a runs, with 8/8 GPUs\n"},
		"it waits for a date": {dated, "--wait 10s",
			"Run a waits: short by 8 GPUs; it starts 13:30 (in 30m)\n"},
		"it waits without one": {clitest.Waits("NoBudget", "no Budget pays"), "--wait 10s",
			"Run a waits: no Budget pays\n"},
		"it has ended": {failed, "--wait 10s", "Run a is Failed: it failed\n"},
		"nobody has decided": {clitest.Waits("Waiting", "waiting to be placed"), "--wait 100ms",
			"Run a: the scheduler has not decided yet\n"},
	} {
		said := clitest.Do(t, scheduled(t, c.status), Command, append(strings.Fields(c.args), fileOf(t, text(t, "a", "")))...)
		want := clitest.Said{Out: "run.rq.davidlangworthy.io/a created\n",
			Err: c.want + "Follow with: kubectl runs watch -n rai a\n"}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A Run that has ended makes way if it may; one that has not, never does.
func TestAFinishedRunIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		phase rqv1.RunPhase
		args  string
		code  int
		uid   string
		want  string
	}{
		"replaced": {rqv1.RunCompleted, "--replace-finished", 0, "another", "run.rq.davidlangworthy.io/a created"},
		"only if asked": {rqv1.RunFailed, "", 1, "a-uid",
			"already exists and is Failed; replace it with --replace-finished"},
		"it runs":        {rqv1.RunRunning, "--replace-finished", 1, "a-uid", "only Runs that have ended are replaced"},
		"it runs, plain": {rqv1.RunRunning, "", 1, "a-uid", "already exists; delete it first or choose another name"},
	} {
		was := clitest.RunOf("a", 8, 0, rqv1.RunStatus{Phase: c.phase})
		server := clitest.NewServer(t, &was)
		said := clitest.Do(t, server, Command, append(strings.Fields(c.args), "--wait=0s", fileOf(t, text(t, "a", "")))...)
		if said.Code != c.code || !strings.Contains(said.Out+said.Err, c.want) {
			t.Errorf("%s: %+v, want code %d, %q", name, said, c.code, c.want)
		}
		uid := server.Get(&was, "metadata", "uid")
		if uid != string(was.UID) {
			uid = "another"
		}
		if uid != c.uid {
			t.Errorf("%s: the Run that is there is %q, want %q", name, uid, c.uid)
		}
	}
}

// Files of the Web are read as others are.
func TestFilesOfTheWeb(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.yaml" {
			http.NotFound(out, r)
			return
		}
		_, _ = out.Write([]byte(text(t, "a", "")))
	}))
	t.Cleanup(web.Close)
	said := clitest.Do(t, clitest.NewServer(t), Command, "--wait=0s", web.URL+"/a.yaml")
	if said.Code != 0 || !strings.Contains(said.Out, "/a created") {
		t.Errorf("%+v", said)
	}
	said = clitest.Do(t, clitest.NewServer(t), Command, web.URL+"/none.yaml")
	if said.Code != session.ExitError || !strings.Contains(said.Err, "/none.yaml: the server answers 404 Not Found") {
		t.Errorf("%+v", said)
	}
}

// fleetOf is what the scheduler publishes of a fleet with some types of GPUs.
func fleetOf(t *testing.T, types ...string) *corev1.ConfigMap {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	fleet := published.Fleet{}
	for _, gpuType := range types {
		fleet.Domains = append(fleet.Domains, published.Domain{GPUType: gpuType, GPUs: 8, Free: 8, Nodes: 1})
	}
	data, err := published.Data(args, fleet)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: published.ConfigMap},
		Data: data}
}

// What is perhaps mistyped is asked about, and created all the same.
func TestWhatIsPerhapsMistyped(t *testing.T) {
	budget := rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "rai"}, Spec: rqv1.BudgetSpec{Owner: "org:ai:rai"}}
	for name, c := range map[string]struct {
		gpuType, owner string
		want           string
	}{
		"nothing": {"H100-80GB", "org:ai:rai", ""},
		"its case": {"h100-80gb", "org:ai:rai",
			"Warning: Run a: no node has GPUs of type h100-80gb; did you mean H100-80GB?\n"},
		"another type": {"TPU", "org:ai:rai",
			"Warning: Run a: no node has GPUs of type TPU; there are A100, H100-80GB\n"},
		"an owner": {"A100", "org:ai:ria",
			"Warning: Run a: no Budget has the owner org:ai:ria; did you mean org:ai:rai?\n"},
		"an owner of a family": {"A100", "org:ai:rai:sys", ""},
		"an unlike owner":      {"A100", "org:physics", ""},
	} {
		server := clitest.NewServer(t, &budget, fleetOf(t, "H100-80GB", "A100"))
		run := strings.NewReplacer("H100-80GB", c.gpuType, "org:ai:rai", c.owner).Replace(text(t, "a", ""))
		run = strings.Replace(run, "spec:\n", "spec:\n  runtime: {checkpoint: 10m}\n", 1)
		said := clitest.Do(t, server, Command, "--wait=0s", fileOf(t, run))
		want := c.want + "Follow with: kubectl runs watch -n rai a\n"
		if said.Code != 0 || said.Err != want {
			t.Errorf("%s: %+v, want %q", name, said, want)
		}
	}
}

const written = `apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata:
  name: hello
  namespace: rai
spec:
  locality:
    groupGPUs: 8
  owner: org:ai:rai
  resources:
    gpuType: A100
    totalGPUs: 16
  runtime:
    checkpoint: 30m0s
    maxDuration: 2h0m0s
  sparesPerGroup: 4
  template:
    spec:
      containers:
      - command:
        - torchrun
        - train.py
        - --lr=1
        env:
        - name: A
          value: "1"
        - name: B
          value: x
        image: train:1.0
        name: main
`

func TestARunFromOneLine(t *testing.T) {
	const full = "hello --gpus 16 --group-gpus 8 --spares 4 --max-duration 2h --checkpoint 30m --image train:1.0 " +
		"--env B=x,A=1 "
	for name, c := range map[string]struct {
		args   string
		types  []string
		mayUse []string
		code   int
		out    string
		err    string
		stored bool
	}{
		"as YAML": {args: full + "-o yaml -- torchrun train.py --lr=1", types: []string{"A100"},
			mayUse: []string{"org:ai:rai"}, out: written},
		"created": {args: "hello --gpus 8 --type A100 --owner org:ai:rai --wait=0s",
			out: "run.rq.davidlangworthy.io/hello created\n", err: "Follow with: kubectl runs watch -n rai hello\n",
			stored: true},
		"without a name": {args: "--gpus 8 --type A100 --owner org:ai:rai --wait=0s", out: "run.rq.davidlangworthy.io/run-"},
		"that waits again": {args: full + "--on-timeout requeue --type A100 --owner org:ai:rai -o yaml -- torchrun " +
			"train.py --lr=1", out: strings.Replace(written, "    maxDuration: 2h0m0s\n",
			"    maxDuration: 2h0m0s\n    onTimeout: Requeue\n", 1)},
		"that waits again from nothing": {args: "--gpus 8 --max-duration 2h --on-timeout Requeue", code: session.ExitUsage,
			err: "--on-timeout Requeue needs --checkpoint, such as --checkpoint 30m"},
		"that waits again at once": {args: "--gpus 8 --max-duration 59s --checkpoint 10s --on-timeout Requeue",
			code: session.ExitUsage, err: "--on-timeout Requeue needs a --max-duration of at least 1m"},
		"that is never over": {args: "--gpus 8 --checkpoint 2h --on-timeout Fail", code: session.ExitUsage,
			err: "--on-timeout needs --max-duration"},
		"which does what then": {args: "--gpus 8 --on-timeout Stop", code: session.ExitUsage,
			err: "--on-timeout \"Stop\": choose Fail or Requeue"},
		"which type": {args: "--gpus 8 --owner o", types: []string{"A100", "H100"}, code: session.ExitUsage,
			err: "set the type of GPU with --type; there are A100, H100"},
		"whose": {args: "--gpus 8 --type A100", mayUse: []string{"org:b", "org:a"}, code: session.ExitUsage,
			err: "set the owner who pays with --owner; there are org:a, org:b"},
		"how many": {args: "hello", code: session.ExitUsage, err: "set the number of GPUs"},
		"in what": {args: "hello --gpus 8 -- ls", code: session.ExitUsage, err: "set the image in which the " +
			"command runs"},
		"two names":       {args: "hello ls --gpus 8", code: session.ExitUsage, err: "give one name"},
		"an unknown form": {args: "--gpus 8 -o csv", code: session.ExitUsage, err: "choose from yaml, json"},
	} {
		server := clitest.NewServer(t, fleetOf(t, c.types...))
		server.MayUse = c.mayUse
		said := clitest.Do(t, server, New, strings.Fields(c.args)...)
		if said.Code != c.code || !strings.HasPrefix(said.Out, c.out) || !strings.Contains(said.Err, c.err) {
			t.Errorf("%s: %+v, want code %d, %q, %q", name, said, c.code, c.out, c.err)
		}
		run := clitest.RunOf("hello", 8, 0, rqv1.RunStatus{})
		if stored := server.Get(&run, "metadata", "name") != ""; stored != c.stored {
			t.Errorf("%s: it is created: %v", name, stored)
		}
	}
}
