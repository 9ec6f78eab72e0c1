package fleet

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// quick is the command, with little patience between two looks.
func quick(s *session.Session) *cobra.Command {
	return (&fleet{Session: s, every: time.Millisecond}).command()
}

// objects are two nodes, a JobSet's Run on one of them, and what the scheduler has published.
func objects(t *testing.T) []client.Object {
	var out []client.Object
	for _, name := range []string{"a1", "a2"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "west",
			"cluster": "one", "fabric.domain": "A", "gpu.flavor": "H100"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
		out = append(out, n)
	}
	run := clitest.Stands(clitest.RunOf("", 8, 0, clitest.Runs(8)), "jobset.x-k8s.io", "JobSet", "llm")
	lease := clitest.LeaseOf(&run, "l", 0, "a1")
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := published.Data(args, published.Fleet{Levels: args.TopologyLevels, Domains: []published.Domain{
		{Values: []string{"west", "one", "A"}, GPUType: "H100", GPUs: 16, Free: 8, Promised: 2, Nodes: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	public := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: published.ConfigMap},
		Data: data}
	return append(out, &run, &lease, public)
}

func TestTheFleet(t *testing.T) {
	server := clitest.NewServer(t, objects(t)...)
	for args, want := range map[string]string{
		"": "  A  west/one   a1 JJJJJJJJ   a2 ........\n\n  J rai/JobSet/llm 8   . free 8\n",
		"--domains": "  A  west/one   [################................] 8 of 16 GPUs free, 2 promised, 2 nodes\n\n" +
			"  total: 8 of 16 GPUs free, 2 promised, 2 nodes\n",
	} {
		said := clitest.Do(t, server, Command, strings.Fields(args)...)
		if diff := gocmp.Diff(clitest.Said{Out: want}, said); diff != "" {
			t.Errorf("fleet %s (-want +got):\n%s", args, diff)
		}
	}
	said := clitest.Do(t, server, Command, "-o", "json")
	var got world.Fleet
	err := json.Unmarshal([]byte(said.Out), &got)
	if err != nil || len(got.Domains) != 1 || got.Domains[0].Promised != 2 ||
		got.Domains[0].Nodes != 2 || len(got.Nodes) != 2 || !strings.HasPrefix(got.Runs[0].Run, "rai/jobset-llm-") {
		t.Errorf("%v: %+v", err, said)
	}
}

// Who may not list nodes is shown what the scheduler publishes, and told what that leaves out.
func TestTheFleetOfAResearcher(t *testing.T) {
	server := clitest.NewServer(t, objects(t)...)
	server.Readable = []string{"rai"}
	said := clitest.Do(t, server, Command)
	if said.Code != 0 || !strings.Contains(said.Out, "8 of 16 GPUs free, 2 promised, 2 nodes") ||
		!strings.Contains(said.Err, "Not shown: nodes and the Runs on them; that needs the right") {
		t.Errorf("%+v", said)
	}
	server = clitest.NewServer(t, objects(t)[:2]...)
	server.Readable = []string{"rai"}
	said = clitest.Do(t, server, Command)
	if said.Code != session.ExitError || !strings.Contains(said.Err, "nor could the scheduler's numbers be read") {
		t.Errorf("%+v", said)
	}
}

// What may not be read is told, and the rest is shown.
func TestAPartOfTheFleet(t *testing.T) {
	server := clitest.NewServer(t, objects(t)...)
	server.Before = func(request string) error {
		if request == "list leases" {
			return clitest.Forbidden("list", "leases")
		}
		return nil
	}
	said := clitest.Do(t, server, Command)
	if said.Code != 0 || !strings.Contains(said.Out, "a1 ........") ||
		!strings.Contains(said.Err, "Not shown: GPU leases of all namespaces") {
		t.Errorf("%+v", said)
	}
}

func TestNoFleet(t *testing.T) {
	said := clitest.Do(t, clitest.NewServer(t, clitest.Published(t, "{}")), Command)
	if said.Code != 0 || said.Out != "" || !strings.Contains(said.Err, "No nodes with GPUs found") {
		t.Errorf("%+v", said)
	}
}

// A fleet that is watched is shown again when it has changed, and only then.
func TestTheFleetIsWatched(t *testing.T) {
	all := objects(t)
	server := clitest.NewServer(t, all...)
	looks := 0
	server.Before = func(request string) error {
		if request != "list nodes" {
			return nil
		}
		looks++
		if looks == 3 {
			lease := all[3].(*rqv1.Lease)
			closed := clitest.Closed(*lease, time.Minute, rqv1.ClosedCompleted)
			server.Set(&closed)
		}
		if looks == 6 {
			return clitest.Forbidden("list", "nodes") // the command sees no nodes from now on, and ends with the next
		}
		if looks == 7 {
			return session.Fail(1, "enough")
		}
		return nil
	}
	said := clitest.Do(t, server, quick, "--watch")
	want := "  A  west/one   a1 JJJJJJJJ   a2 ........\n\n  J rai/JobSet/llm 8   . free 8\n" +
		"\n  A  west/one   a1 ........   a2 ........\n\n  . free 16\n" +
		"\n  A  west/one   [################................] 8 of 16 GPUs free, 2 promised, 2 nodes\n\n" +
		"  total: 8 of 16 GPUs free, 2 promised, 2 nodes\n"
	if diff := gocmp.Diff(want, said.Out); diff != "" || looks != 7 {
		t.Errorf("after %d looks (-want +got):\n%s", looks, diff)
	}
}

// What people write on their pods and nodes say of themselves neither rules the terminal nor makes lines of its own.
func TestNobodyElseDraws(t *testing.T) {
	all := objects(t)
	all[1].SetAnnotations(map[string]string{rqv1.AnnotationHeldBack: "\033[2Jout\n  . free 800"})
	run := clitest.Stands(clitest.RunOf("", 8, 0, clitest.Runs(8)), "", "Group", "x\033]0;owned\007\n  . free 900")
	lease := clitest.LeaseOf(&run, "x-0", 0, "a2")
	said := clitest.Do(t, clitest.NewServer(t, append(all, &run, &lease)...), Command)
	if said.Code != 0 || strings.ContainsAny(said.Out, "\033\007") || strings.Contains(said.Out, "\n  . free 8") ||
		strings.Contains(said.Out, "\n  . free 9") || !strings.Contains(said.Out, "Group/x?]0;owned??  . free 900 8") {
		t.Errorf("%+v", said)
	}
}

// TestTheWatchedFleetAgreesWithTheData has another random fleet come up with each look, on a terminal: each time all
// that is drawn is what the data says, GPU by GPU, whatever letters the Runs before had.
func TestTheWatchedFleetAgreesWithTheData(t *testing.T) {
	var worlds [][]client.Object
	for seed := range 12 {
		worlds = append(worlds, clitest.Fleets().Example(seed))
	}
	server, looks := clitest.NewServer(t, clitest.Published(t, "{}")), 0
	server.Before = func(request string) error {
		if !strings.HasPrefix(request, "get configmaps") { // the first of each look
			return nil
		}
		if looks == len(worlds) {
			return session.Fail(1, "enough")
		}
		if looks > 0 {
			server.Delete(worlds[looks-1]...)
		}
		server.Set(worlds[looks]...)
		looks++
		return nil
	}
	shown := strings.Split(clitest.OnTerminal(t, server, quick, 300, "", "--watch").Out, "\033[H\033[2J")[1:]
	if len(shown) < len(worlds) {
		t.Fatalf("%d pictures of %d fleets", len(shown), len(worlds))
	}
	for i, objects := range worlds {
		server := clitest.NewServer(t, append(objects, clitest.Published(t, "{}"))...)
		var now world.Fleet
		if err := json.Unmarshal([]byte(clitest.Do(t, server, Command, "-o", "json").Out), &now); err != nil {
			t.Fatal(err)
		}
		called := session.Names{}
		var nodes []string
		for _, o := range objects {
			switch o := o.(type) {
			case *rqv1.Run:
				called.Add(o)
			case *corev1.Node:
				nodes = append(nodes, o.Name)
			}
		}
		cells, named := clitest.CellsOf(shown[i], nodes)
		want := clitest.CellsOfNodes(now.Nodes, func(run string) string {
			namespace, name, _ := strings.Cut(run, "/")
			return namespace + "/" + cmp.Or(called[name], name)
		}, named)
		if diff := gocmp.Diff(want, cells); diff != "" {
			t.Errorf("fleet %d (-data +watched):\n%s\n%s", i, diff, shown[i])
		}
	}
}
