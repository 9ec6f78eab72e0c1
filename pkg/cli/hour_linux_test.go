package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// desk is where somebody types commands: a pipe, or a terminal of so many columns, in a time zone.
type desk struct {
	*town
	t       *testing.T
	columns int // 0 for a pipe
	zone    *time.Location
	now     atomic.Pointer[time.Time]
	looks   atomic.Pointer[chan struct{}] // is told that somebody has looked at the clock
	text    strings.Builder
	watched func() // waits for the end of what was begun with "&", and writes down what it printed
}

// act is what happens at a time after noon: something in the cluster, or a command that somebody types.
type act struct {
	at   time.Duration
	does func(*sim.Cluster)
	// line is the command line behind "kubectl runs": "> FILE" has its output go to a file, and "&" lets it go on until
	// the next line that is "fg". File is one that is written before.
	line, file, text string
	typed            string // what is answered on a terminal
}

// hour is the first hour of somebody, who may read what is in some namespaces; nil for everything.
type hour struct {
	readable []string
	acts     []act
}

// TestFirstHours has two people type what they need in their first hour. Read the golden files as they would: what is
// cut off, what is told twice, whose time it is.
func TestFirstHours(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "xterm")
	losAngeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]struct {
		hour    hour
		columns int
		zone    *time.Location
	}{
		"researcher-pipe": {researcher, 0, time.UTC},
		"researcher-80":   {researcher, 80, losAngeles},
		"researcher-120":  {researcher, 120, time.UTC},
		"operator-pipe":   {operator, 0, losAngeles},
		"operator-80":     {operator, 80, time.UTC},
		"operator-120":    {operator, 120, losAngeles},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{town: newTown(t), t: t, columns: at.columns, zone: at.zone}
			d.server.Readable = at.hour.readable
			d.play(at.hour.acts)
			clitest.Golden(t, name, d.text.String())
		})
	}
}

// play has everything happen at its time.
func (d *desk) play(acts []act) {
	here, err := os.Getwd()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Chdir(d.t.TempDir())
	defer d.t.Chdir(here) // where the golden files are
	d.kubeconfig()
	var events []sim.Event
	for i := range acts {
		a := &acts[i]
		events = append(events, sim.Event{At: clitest.Noon.Add(a.at), Do: func(c *sim.Cluster) {
			if a.does != nil {
				a.does(c)
				return
			}
			d.types(a)
		}})
	}
	_ = d.Play(tenants(), events, clitest.Noon.Add(2*time.Hour))
}

// kubeconfig says where the cluster is.
func (d *desk) kubeconfig() {
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, "+
		"clusters: [{name: c, cluster: {server: %q}}], "+
		"contexts: [{name: c, context: {cluster: c, namespace: %s}}]}", d.server.URL, sim.Namespace)
	if err := os.WriteFile("kubeconfig", []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.t.Setenv("KUBECONFIG", "kubeconfig")
}

// types has somebody give a command.
func (d *desk) types(a *act) {
	now := d.Now.In(d.zone)
	d.now.Store(&now)
	d.settle()
	if a.file != "" {
		if err := os.WriteFile(a.file, []byte(a.text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	if a.line == "fg" {
		d.watched()
		return
	}
	fmt.Fprintf(&d.text, "%s $ kubectl runs %s\n", now.Format("15:04"), a.line)
	line, file, _ := strings.Cut(a.line, " > ")
	line, background := strings.CutSuffix(line, " &")
	words := strings.Fields(line)
	if background {
		d.inBackground(words)
		return
	}
	if words[0] == "submit" { // it is slow only where the machine is
		words = append(words, "--wait=30s")
	}
	d.tell(d.run(words, file, a.typed))
	d.settle()
}

// inBackground begins a command, and returns once it has told something, for which it looks at the clock.
func (d *desk) inBackground(words []string) {
	told, ended := make(chan struct{}, 1), make(chan string, 1)
	d.looks.Store(&told)
	go func() { ended <- d.run(words, "", "") }()
	<-told
	d.looks.Store(nil)
	d.watched = func() { d.tell(<-ended) }
}

// clock tells the time, and whoever waits for it that somebody has looked.
func (d *desk) clock() time.Time {
	if told := d.looks.Load(); told != nil {
		select {
		case *told <- struct{}{}:
		default:
		}
	}
	return *d.now.Load()
}

func (d *desk) tell(text string) { d.text.WriteString(text + "\n") }

// run runs a command and returns all that is seen of it.
func (d *desk) run(words []string, file, typed string) string {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	var terminal *os.File
	var shown <-chan string
	if d.columns > 0 {
		terminal, shown = clitest.Terminal(d.t, d.columns, typed)
		streams = genericiooptions.IOStreams{In: terminal, Out: terminal, ErrOut: terminal}
	}
	if file != "" {
		into, err := os.Create(file)
		if err != nil {
			d.t.Error(err)
		}
		defer func() { _ = into.Close() }()
		streams.Out = into
	}
	root := newCommand(streams, d.clock)
	code := Execute(context.Background(), root, words, streams.ErrOut)
	text := out.String() + errOut.String()
	if terminal != nil {
		_ = terminal.Close()
		text = <-shown
		if typed != "" { // it is echoed as early as it was typed, before it was asked for
			text = strings.Replace(strings.Replace(text, typed, "", 1), "[y/N] ", "[y/N] "+typed, 1)
		}
	}
	if code != 0 {
		text += fmt.Sprintf("[exit code %d]\n", code)
	}
	return text
}

// tenants are the Runs that are there already, for so long.
func tenants() []sim.Job {
	job := func(at time.Duration, works time.Duration, name string, owner rqv1.Owner, gpus int32,
		change func(*rqv1.RunSpec)) sim.Job {
		run := clitest.RunOf(name, gpus, 0, rqv1.RunStatus{})
		run.Spec.Owner, run.Spec.Submitter = owner, "bob"
		change(&run.Spec)
		return sim.Job{At: clitest.Noon.Add(at), Run: &run, Works: works}
	}
	return []sim.Job{
		job(0, 100*time.Hour, "trainer-64", "org:ai:rai", 64, func(s *rqv1.RunSpec) {
			s.Locality = &rqv1.RunLocality{GroupGPUs: clitest.Ptr[int32](32)}
		}),
		job(0, 100*time.Hour, "elastic", "org:ai:rai", 48, func(s *rqv1.RunSpec) {
			s.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 48, StepGPUs: 16}
		}),
		job(0, 100*time.Hour, "eval-8", "org:ai:aud", 8, func(s *rqv1.RunSpec) {
			s.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 3 * time.Hour}}
		}),
	}
}

// succeeds has the ranks of a Run end.
func succeeds(name string) func(*sim.Cluster) {
	return func(c *sim.Cluster) {
		for _, pod := range c.PodsOf(name) {
			if pod.Status.Phase == corev1.PodRunning {
				c.EndPod(pod.UID, corev1.PodSucceeded)
			}
		}
	}
}

const typo = `apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata:
  name: typo
spec:
  owner: org:ai:mm
  resources: {gpuType: h100-80gb, gpus: 8}
`

const sweep = `apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata:
  name: sweep
spec:
  owner: org:ai:mm
  resources: {gpuType: H100-80GB, totalGPUs: 48}
`

var researcher = hour{readable: []string{sim.Namespace}, acts: []act{
	{at: 1 * time.Minute, line: "fleet"},
	{at: 1 * time.Minute, line: "list"},
	{at: 1 * time.Minute, line: "list -A"},
	{at: 1 * time.Minute, line: "budgets usage --owner org:ai:mm"},
	{at: 2 * time.Minute, line: "new hello --gpus 16 --owner org:ai:mm --image registry.example.com/train:1.0 " +
		"--checkpoint 10m --max-duration 2h -o yaml -- torchrun train.py > hello.yaml"},
	{at: 2 * time.Minute, line: "plan -f hello.yaml"},
	{at: 2 * time.Minute, line: "submit typo.yaml", file: "typo.yaml", text: typo},
	{at: 2 * time.Minute, line: "submit hello.yaml"},
	{at: 2 * time.Minute, line: "submit hello.yaml"},
	{at: 3 * time.Minute, line: "list"},
	{at: 3 * time.Minute, line: "explain hello"},
	{at: 3 * time.Minute, line: "plan hello"},
	{at: 3 * time.Minute, line: "plan -A"},
	{at: 3 * time.Minute, line: "reservations"},
	{at: 3 * time.Minute, line: "explain --verify hello-r0"},
	{at: 3 * time.Minute, line: "budgets explain hello"},
	{at: 3 * time.Minute, line: "logs hello"},
	{at: 4 * time.Minute, line: "plan -f sweep.yaml", file: "sweep.yaml", text: sweep},
	{at: 4 * time.Minute, line: "submit sweep.yaml"},
	{at: 5 * time.Minute, line: "cancel sweep"},
	{at: 5 * time.Minute, line: "watch hello --until Running &"},
	{at: 18 * time.Minute, line: "fg"},
	{at: 20 * time.Minute, line: "list"},
	{at: 20 * time.Minute, line: "list -o wide"},
	{at: 20 * time.Minute, line: "explain hello"},
	{at: 20 * time.Minute, line: "explain elastic"},
	{at: 20 * time.Minute, line: "explain --verify hello-r0"},
	{at: 20 * time.Minute, line: "leases hello"},
	{at: 20 * time.Minute, line: "leases hello --pods"},
	{at: 20 * time.Minute, line: "budgets explain hello"},
	{at: 21 * time.Minute, line: "logs hello"},
	{at: 21 * time.Minute, line: "logs hello --all --tail 1"},
	{at: 21 * time.Minute, line: "exec hello -- nvidia-smi"},
	{at: 21 * time.Minute, line: "shell hello"},
	{at: 21 * time.Minute, line: "shell hello --rank 7"},
	{at: 30 * time.Minute, line: "checkpointed hello"},
	{at: 30 * time.Minute, line: "explain hellp"},
	{at: 30 * time.Minute, line: "lst"},
	{at: 31 * time.Minute, does: func(c *sim.Cluster) { c.Lose("c1") }},
	{at: 32 * time.Minute, line: "list"},
	{at: 32 * time.Minute, line: "explain hello"},
	{at: 50 * time.Minute, does: succeeds("hello")},
	{at: 51 * time.Minute, line: "list"},
	{at: 51 * time.Minute, line: "explain hello"},
	{at: 51 * time.Minute, line: "history"},
	{at: 51 * time.Minute, line: "history --mine -o wide"},
	{at: 51 * time.Minute, line: "submit hello.yaml --replace-finished"},
	{at: 52 * time.Minute, line: "cancel hello eval-8", typed: "y\n"},
	{at: 52 * time.Minute, line: "list --mine"},
}}

var operator = hour{acts: []act{
	{at: 1 * time.Minute, line: "fleet"},
	{at: 1 * time.Minute, line: "list -A"},
	{at: 1 * time.Minute, line: "nodes"},
	{at: 1 * time.Minute, line: "budgets usage"},
	{at: 1 * time.Minute, line: "budgets usage --tree"},
	{at: 1 * time.Minute, line: "leases -A"},
	{at: 1 * time.Minute, line: "leases -A --pods"},
	{at: 2 * time.Minute, line: "maintenance set a1 a2 --start 30m --for 2h"},
	{at: 2 * time.Minute, line: "maintenance list"},
	{at: 3 * time.Minute, line: "list -A"},
	{at: 3 * time.Minute, line: "explain trainer-64"},
	{at: 4 * time.Minute, does: cordons("d1")},
	{at: 5 * time.Minute, line: "nodes"},
	{at: 5 * time.Minute, line: "list -A"},
	{at: 6 * time.Minute, line: "submit hello.yaml", file: "hello.yaml", text: hello},
	{at: 7 * time.Minute, line: "plan -A"},
	{at: 7 * time.Minute, line: "cuts"},
	{at: 7 * time.Minute, line: "cuts pause --because power"},
	{at: 7 * time.Minute, line: "cuts status"},
	{at: 7 * time.Minute, line: "cuts resume"},
	{at: 10 * time.Minute, does: func(c *sim.Cluster) { c.Lose("c2") }},
	{at: 12 * time.Minute, line: "nodes"},
	{at: 12 * time.Minute, line: "list -A"},
	{at: 12 * time.Minute, line: "explain elastic"},
	{at: 12 * time.Minute, line: "nodes lost c3 --because PDU"},
	{at: 13 * time.Minute, line: "nodes"},
	{at: 13 * time.Minute, line: "nodes clear c3"},
	{at: 14 * time.Minute, line: "fleet"},
	{at: 50 * time.Minute, line: "list -A"},
	{at: 50 * time.Minute, line: "plan -A"},
	{at: 50 * time.Minute, line: "leases -A --closed"},
	{at: 50 * time.Minute, line: "leases -A --closed --pods"},
	{at: 50 * time.Minute, line: "history -A"},
	{at: 50 * time.Minute, line: "history -A -o wide"},
	{at: 50 * time.Minute, line: "budgets usage"},
	{at: 50 * time.Minute, line: "budgets usage --tree"},
	{at: 50 * time.Minute, line: "budgets explain elastic"},
	{at: 50 * time.Minute, line: "maintenance cancel a1 a2"},
	{at: 50 * time.Minute, line: "explain --verify hello-r0"},
	{at: 50 * time.Minute, line: "audit"},
}}

// cordons has somebody cordon a node.
func cordons(name string) func(*sim.Cluster) {
	return func(c *sim.Cluster) {
		node := c.Nodes[name].DeepCopy()
		node.Spec.Unschedulable = true
		c.SetNode(node)
	}
}

const hello = `apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata:
  name: hello
spec:
  owner: org:ai:mm
  resources: {gpuType: H100-80GB, totalGPUs: 16}
  runtime: {checkpoint: 10m}
`
