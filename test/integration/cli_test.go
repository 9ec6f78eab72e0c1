package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
	"github.com/davidlangworthy/jobtree/test/story"
)

// said is what a command wrote, and its exit code.
type said struct {
	out, err string
	code     int
}

// command runs a kubectl command line, which may hold no blanks within a word, with a standard input.
func command(t *testing.T, c *controlplane.ControlPlane, stdin, line string) said {
	t.Helper()
	out, problems, err := c.KubectlStdin(t.Context(), strings.NewReader(stdin), strings.Fields(line)...)
	return said{out: out, err: problems, code: exitCode(t, line, err)}
}

func exitCode(t *testing.T, line string, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: %v", line, err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// mustCommand is command for commands that have to succeed. It returns what they write.
func mustCommand(t *testing.T, c *controlplane.ControlPlane, stdin, line string) string {
	t.Helper()
	s := command(t, c, stdin, line)
	if s.code != 0 {
		t.Fatalf("kubectl %s: exit code %d: %s", line, s.code, s.err)
	}
	return s.out
}

func runYAML(name, spec string) string {
	return "apiVersion: rq.davidlangworthy.io/v1\nkind: Run\nmetadata:\n  name: " + name +
		"\nspec:\n  owner: org:cli\n  " + spec + "\n---\n"
}

const eightGPUs = "resources: {gpuType: H100-80GB, totalGPUs: 8}"

func TestCLIOnAnAPIServerAlone(t *testing.T) {
	t.Parallel()
	c := apiServer(t)
	mustCommand(t, c, "", "create namespace cli")
	t.Cleanup(func() {
		_, _, _ = c.Kubectl(context.Background(), "delete", "namespace", "cli")
	})
	bob, err := c.KubeconfigForUser("bob")
	if err != nil {
		t.Fatal(err)
	}
	first, second := runYAML("first", eightGPUs), runYAML("second", eightGPUs)
	for _, step := range []struct {
		name, stdin, line string
		out, err          string // what the output has to contain
		code              int
	}{
		{name: "nothing to list", line: "runs list -n cli", err: "No Runs found in namespace cli.\n"},
		{name: "nothing paid", line: "runs leases -n cli", err: "No GPU leases found in namespace cli.\n"},
		{name: "unknown field in the second document", stdin: first + runYAML("second", "gpus: 8"),
			line: "runs submit -n cli -f -",
			err: `Error: standard input, document 2: unknown field "spec.gpus"; did you mean spec.resources.totalGPUs?` +
				"\nNothing was created.", code: 1},
		{name: "so the first was not created", line: "runs explain -n cli first",
			err: `Run "first" not found in namespace "cli"; "kubectl runs list -A" lists those that you may read`, code: 1},
		{name: "dry run on the client", stdin: first, line: "runs submit -n cli -f - --dry-run=client",
			out: "run.rq.davidlangworthy.io/first created (dry run)\n"},
		{name: "dry run on the server", stdin: first, line: "runs submit -n cli -f - --dry-run=server",
			out: "run.rq.davidlangworthy.io/first created (server dry run)\n"},
		{name: "dry runs create nothing", line: "runs list -n cli -o name"},
		{name: "refused by the server, dry", stdin: runYAML("zero", strings.Replace(eightGPUs, "8}", "0}", 1)),
			line: "runs submit -n cli -f - --dry-run=server",
			err:  "the server refused Run cli/zero: spec.resources.totalGPUs: ", code: 1},
		{name: "a duration that is none", stdin: runYAML("slow", eightGPUs+"\n  runtime: {checkpoint: ten}"),
			line: "runs submit -n cli -f -",
			err:  "the server refused Run cli/slow: spec.runtime.checkpoint: ", code: 1},
		{name: "no owner", stdin: strings.Replace(first, "owner:", "#owner:", 1), line: "runs submit -n cli -f -",
			err: "the server refused Run cli/first: spec.owner: Required value\n", code: 1},
		{name: "no such namespace", stdin: first, line: "runs submit -n nowhere -f -",
			err: `namespaces "nowhere" not found; create the namespace first`, code: 1},
		{name: "namespaces at odds", stdin: strings.Replace(first, "metadata:", "metadata:\n  namespace: cli", 1),
			line: "runs submit -n default -f -",
			err:  `Run cli/first is in namespace "cli", but -n says "default"`, code: 1},
		{name: "one refused, one created", stdin: runYAML("Bad", eightGPUs) + first,
			line: "runs submit -n cli - --wait=0s",
			out:  "run.rq.davidlangworthy.io/first created\n", err: "the server refused Run cli/Bad", code: 1},
		{name: "exists already", stdin: first + second, line: "runs submit -n cli --file - --wait=0s",
			out: "run.rq.davidlangworthy.io/second created\n",
			err: "Run cli/first already exists; delete it first or choose another name", code: 1},
		{name: "as written", stdin: runYAML("third", eightGPUs),
			line: "runs submit -n cli -f - --wait=0s -o jsonpath={.spec.resources}",
			out:  `{"gpuType":"H100-80GB","totalGPUs":8}`},
		{name: "hint", stdin: runYAML("fourth", eightGPUs), line: "runs submit -n cli -f - -o name",
			out: "run.rq.davidlangworthy.io/fourth\n",
			err: "Run fourth: the scheduler has not decided yet\nFollow with: kubectl runs watch -n cli fourth\n"},
		{name: "mine, of which there are those that I submitted", line: "runs list -n cli --mine -o name",
			out: "run.rq.davidlangworthy.io/first\n"},
		{name: "somebody else's name", stdin: runYAML("forged", "submitter: bob\n  "+eightGPUs),
			line: "create -n cli -f -", err: "spec.submitter: user ", code: 1},
		{name: "nor later", line: `patch run.rq -n cli first --type=merge -p {"spec":{"submitter":"bob"}}`,
			err: "spec.submitter is fixed once a Run is created", code: 1},
		{name: "names", line: "runs list -n cli -o name",
			out: "run.rq.davidlangworthy.io/first\nrun.rq.davidlangworthy.io/fourth\n"},
		{name: "a v1 List", line: "runs list -n cli -o jsonpath={.apiVersion}/{.kind}:{.items[*].kind}",
			out: "v1/List:Run Run Run Run"},
		{name: "phase", line: "runs list -n cli --phase running", err: "No Runs found in namespace cli."},
		{name: "all namespaces", line: "runs list -A", out: "NAMESPACE"},
		{name: "a scheduler is missing", line: "runs explain -n cli first", out: "The scheduler has not processed this " +
			"version of the Run"},
		{name: "timeout", line: "runs watch -n cli first --until Running --timeout 1s",
			out: "first  Pending    0/8 GPUs      waiting to be placed",
			err: "Error: timed out after 1s; Run first is Pending: waiting to be placed", code: 4},
		{name: "watch what is not there", line: "runs watch -n cli nothing", err: `Run "nothing" not found`, code: 1},
		{name: "no right", line: "runs list -n cli --kubeconfig " + bob,
			err: `User "bob" cannot list resource "runs" in API group "rq.davidlangworthy.io" in the namespace "cli"; ask an ` +
				`administrator`, code: 1},
		{name: "no Budgets", line: "runs budgets usage", err: "No Budgets found.\n"},
		{name: "none of an owner", line: "runs budgets usage --owner org:no* --tree",
			err: "No Budgets of owner org:no* found; "},
		{name: "no Budgets, for a script", line: "runs budgets usage -o json", out: `"envelopes": [],`},
		{name: "everybody may read Budgets", line: "runs budgets usage --kubeconfig " + bob, err: "No Budgets found.\n"},
		{name: "a tree is no data", line: "runs budgets usage --tree -o json", err: "--tree cannot be combined", code: 2},
		{name: "no such command of budgets", line: "runs budgets use",
			err: `"use" is not a command of "kubectl runs budgets"; choose from usage, explain`, code: 2},
		{name: "nobody has been asked", line: "runs budgets explain -n cli first",
			out: "who would pay is not known yet. The scheduler has not processed this version of the Run"},
		{name: "whose payers", line: "runs budgets explain -n cli nothing", err: `Run "nothing" not found in namespace "cli"`,
			code: 1},
		{name: "no such time", line: "runs leases --since yesterday", err: "--since must be a time such as 12h or 30d",
			code: 2},
		{name: "an empty ledger for finance", line: "runs leases -n cli -o csv", out: "namespace,run,run_owner,payer_owner,"},
		{name: "completion", line: "__complete runs watch -n cli f", out: "first\nfourth\n"},
		{name: "version", line: "runs version", out: "Server: v1."},
		{name: "nothing printed yet", line: "runs logs -n cli first", code: 1,
			err: "Error: Run first has no pods: it is Pending: waiting to be placed\n"},
		{name: "nowhere to go", line: "runs exec -n cli first -- env", err: "Run first has no pods", code: 1},
		{name: "cancel all unasked", line: "runs cancel -n cli --all", code: 2,
			err: "4 Runs would be canceled in namespace cli; use --yes to cancel without being asked"},
		{name: "cancel", line: "runs cancel -n cli second fifth", code: 1, out: "Run second canceled\n",
			err: `Run "fifth" not found in namespace "cli"`},
	} {
		t.Run(step.name, func(t *testing.T) {
			got := command(t, c, step.stdin, step.line)
			if got.code != step.code || !strings.Contains(got.out, step.out) || !strings.Contains(got.err, step.err) {
				t.Errorf("kubectl %s:\ncode %d, want %d\noutput %q\n  want %q\nerror  %q\n  want %q",
					step.line, got.code, step.code, got.out, step.out, got.err, step.err)
			}
			if step.out == "" && got.out != "" {
				t.Errorf("kubectl %s: want no output, got %q", step.line, got.out)
			}
		})
	}
	checkLogs(t, c, "cli", "first")
	mustCommand(t, c, "", "runs cancel -n cli --all --yes")
}

// The samples on the sample fleet, as a person follows them.
func TestCLIFollowsTheSamples(t *testing.T) {
	t.Parallel()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	samples := filepath.Join(root, "manifests", "samples")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := controlplane.Start(ctx, controlplane.Options{
		Dir: t.TempDir(), Fleet: filepath.Join(samples, "fleet.yaml"), Kwok: true, Scheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)

	mustCommand(t, c, "", "apply -f "+samples+"/namespaces.yaml")
	// MM can pay in one region alone, which trainer-64 may fill: the README has finetune-16 run first.
	mustCommand(t, c, "", "runs submit -f "+samples+"/budgets.yaml -f "+samples+"/runs/finetune-16.yaml")
	mustCommand(t, c, "", "runs watch -n mm finetune-16 --until Running --timeout 60s")
	mustCommand(t, c, "", "runs submit -f "+samples+"/runs/trainer-64.yaml -f "+samples+"/runs/resnet-small.yaml")
	watched := mustCommand(t, c, "", "runs watch -n rai trainer-64 resnet-small --until Running --timeout 60s")
	for _, want := range []string{"Running    64/64 GPUs", "Running    8/8 GPUs"} {
		if !strings.Contains(watched, want) {
			t.Errorf("the watch does not show %q:\n%s", want, watched)
		}
	}
	checkLedger(t, c)
	checkOutage(t, c, root)
	checkWaiting(t, c, samples)
}

// checkLedger compares what the GPU leases of a Run say with what explain makes of them.
func checkLedger(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	var list struct{ Items []rqv1.Lease }
	if err := json.Unmarshal([]byte(mustCommand(t, c, "", "runs leases -n rai trainer-64 --open -o json")),
		&list); err != nil {
		t.Fatal(err)
	}
	held := map[int32]int32{}
	for _, lease := range list.Items {
		if lease.Spec.Payer.Budget != "rai" {
			t.Errorf("GPU lease %s is paid by %s", lease.Name, lease.Spec.Payer.Budget)
		}
		held[lease.Spec.GroupIndex] += lease.Spec.Slice.Nodes[0].GPUs
	}
	if diff := cmp.Diff(map[int32]int32{0: 32, 1: 32}, held); diff != "" {
		t.Errorf("GPUs by group (-want +got):\n%s", diff)
	}
	text := mustCommand(t, c, "", "runs explain -n mm finetune-16")
	if want := "group 0: 16 GPUs in us-east/gpu-b/"; !strings.Contains(text, want) ||
		!strings.Contains(text, "paid by mm/east-h100 (org:ai:mm)") {
		t.Errorf("explain does not say %q and who pays:\n%s", want, text)
	}
	fleet := mustCommand(t, c, "", "runs fleet")
	for _, want := range []string{"C  us-east/gpu-b  H100-80GB   c1 ", "T rai/trainer-64 64",
		"F mm/finetune-16 16", ". free 40"} {
		if !strings.Contains(fleet, want) {
			t.Errorf("the fleet does not show %q:\n%s", want, fleet)
		}
	}
	if history := mustCommand(t, c, "", "runs history -A"); !strings.Contains(history, "trainer-64") ||
		!strings.Contains(history, "rai/west-h100") {
		t.Errorf("the history does not show who paid:\n%s", history)
	}
	if s := command(t, c, "", "runs leases -A --closed"); s.out != "" || s.err != "No GPU leases found.\n" {
		t.Errorf("closed GPU leases before anything has ended: %+v", s)
	}
}

// checkWaiting submits the samples that cannot start, and lets one of them start by making room.
func checkWaiting(t *testing.T, c *controlplane.ControlPlane, samples string) {
	t.Helper()
	mustCommand(t, c, "", "runs submit -f "+samples+"/waiting")
	for run, want := range map[string]string{
		"-n mm pretrain-128": "short by 96 of 128 GPUs",
		"-n rai ring-40":     "40 H100-80GB GPUs in one domain",
		"-n rai sweep-48":    "short by 8",
	} {
		var message string
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 30*time.Second, true,
			func(context.Context) (bool, error) {
				var story struct {
					Waits struct{ Reason, Message string }
				}
				err := json.Unmarshal([]byte(mustCommand(t, c, "", "runs explain "+run+" -o json")), &story)
				message = story.Waits.Message
				return strings.Contains(message, want), err
			})
		if err != nil {
			t.Errorf("explain %s says %q, want %q: %v", run, message, want, err)
		}
	}
	mustCommand(t, c, "", "runs cancel -n rai resnet-small")
	mustCommand(t, c, "", "runs watch -n rai sweep-48 --until Running --timeout 60s")
	if ledger := mustCommand(t, c, "", "runs leases -n rai resnet-small --closed"); !strings.Contains(ledger, "Deleted") {
		t.Errorf("the ledger of a deleted Run does not say why it ended:\n%s", ledger)
	}
}

// checkOutage follows a Run to its end while the API server is killed and started again.
func checkOutage(t *testing.T, c *controlplane.ControlPlane, root string) {
	t.Helper()
	brief := strings.Replace(runYAML("brief", eightGPUs), "org:cli", "org:ai:mm", 1)
	brief = strings.TrimSuffix(brief, "---\n") + `  template:
    spec:
      restartPolicy: Never
      containers: [{name: worker, image: busybox}]
`
	defer func() {
		if t.Failed() {
			t.Log(command(t, c, "", "get runs,pods,leases.rq.davidlangworthy.io,events -n mm -o wide").out)
			t.Logf("the scheduler runs: %v\n%s", c.Scheduler.Running(), c.Scheduler.LogTail(20))
		}
	}()
	s := command(t, c, brief, "runs submit -n mm - --wait 30s")
	if !strings.Contains(s.err, "Run brief runs, with 8/8 GPUs\n") {
		t.Errorf("the scheduler's first word is not told: %+v", s)
	}
	mustCommand(t, c, "", "runs watch -n mm brief --until Running --timeout 60s")
	watch := exec.CommandContext(t.Context(), filepath.Join(controlplane.BinDir(root), "kubectl-runs"),
		strings.Fields("watch -n mm brief --timeout 2m --kubeconfig "+c.Kubeconfig)...)
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := watch.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	shown, noted := bufio.NewScanner(out), bufio.NewScanner(problems)
	expectLine(t, shown, "Running    8/8 GPUs")
	if err := c.APIServer.Kill(); err != nil {
		t.Error(err)
	}
	expectLine(t, noted, "Lost the API server")
	if err := c.APIServer.Start(); err != nil {
		t.Error(err)
	}
	expectLine(t, noted, "The API server is back.")
	if !c.Scheduler.Running() {
		t.Log("the scheduler has ended, since it could not renew its lease in time: a Deployment would start it again")
	}
	if err := c.Scheduler.Start(); err != nil {
		t.Error(err)
	}
	mustCommand(t, c, "", "annotate pod -n mm brief-0 "+story.SucceedsAnnotation+"=0s")
	expectLine(t, shown, "Completed")
	for shown.Scan() { // until the watch ends
	}
	if code := exitCode(t, "watch", watch.Wait()); code != 0 {
		t.Errorf("the watch of a Run that completes ended with code %d", code)
	}
	s = command(t, c, brief, "runs submit -n mm -")
	if !strings.Contains(s.err, "is Completed; replace it with --replace-finished") {
		t.Errorf("a Run that has ended: %+v", s)
	}
	held := strings.Replace(brief, "spec:\n", "spec:\n  suspend: true\n", 1)
	mustCommand(t, c, held, "runs submit -n mm - --replace-finished")
	mustCommand(t, c, "", "runs cancel -n mm brief")
}

// expectLine reads lines up to one that holds a text.
func expectLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	var read []string
	for lines.Scan() {
		if strings.Contains(lines.Text(), want) {
			return
		}
		read = append(read, lines.Text())
	}
	t.Fatalf("the watch ends without a line that says %q:\n%s", want, strings.Join(read, "\n"))
}
