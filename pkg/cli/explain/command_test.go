package explain

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// life is all that tells of a Run that runs, was cut and moved, and of one of the same name before it.
func life() []client.Object {
	run := clitest.RunOf("trainer", 16, 8, clitest.Runs(16))
	before := *run.DeepCopy()
	before.UID = "the one before"
	held := clitest.As(clitest.LeaseOf(&run, "t-0", 0, "n0"), rqv1.RoleActive, 0)
	gave := clitest.Closed(clitest.As(clitest.LeaseOf(&run, "t-1", 1, "n1"), rqv1.RoleActive, 1), time.Minute,
		rqv1.ClosedNodeFailure)
	old := clitest.Closed(clitest.LeaseOf(&before, "old-0", 0, "n9"), time.Minute, rqv1.ClosedCompleted)
	for _, l := range []*rqv1.Lease{&held, &gave, &old} {
		if l.Labels == nil {
			l.Labels = map[string]string{}
		}
		l.Labels[rqv1.LabelRun] = "trainer"
	}
	rich := clitest.RunOf("rich", 64, 0, clitest.Waits("InsufficientGPUs", "short"))
	cutter := clitest.ReservationOf(&rich, 8)
	cutter.Status.ActivatedAt = clitest.Ptr(metav1.NewMicroTime(clitest.Noon.Add(20 * time.Minute)))
	cutter.Status.Cuts = []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "rai", Name: "trainer"}, UID: run.UID,
		Action: rqv1.CutShrink, GPUs: 8, Width: clitest.Ptr[int32](8)}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", Labels: map[string]string{"region": "west",
		"cluster": "c", "fabric.domain": "A"}}}
	said := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "rai", Name: "e"}, Reason: "Swapped",
		Message: "group 1 swapped", LastTimestamp: clitest.After(time.Minute),
		InvolvedObject: corev1.ObjectReference{Kind: "Run", Name: "trainer", UID: run.UID}}
	return []client.Object{&run, &held, &gave, &old, &cutter, node, said}
}

// TestExplainAsItIsRead tells a Run's life of what may be read, and names what may not; none of it stops the rest.
func TestExplainAsItIsRead(t *testing.T) {
	for refused, lacks := range map[string]string{
		"": "", "list leases": "GPU leases", "list events": "events", "list nodes": "Nodes",
		"list reservations": "Reservations",
	} {
		server := clitest.NewServer(t, append(life(), clitest.Published(t, ""))...)
		server.Before = func(request string) error {
			if verb, resource, _ := strings.Cut(request, " "); request == refused {
				return clitest.Forbidden(verb, resource)
			}
			return nil
		}
		said := clitest.Do(t, server, Command, "trainer", "-o", "json")
		var got explanation
		if err := json.Unmarshal([]byte(said.Out), &got); err != nil || said.Code != 0 {
			t.Fatalf("without %q: %v: %+v", refused, err, said)
		}
		if (len(got.Unread) == 1) != (refused != "") || refused != "" && !strings.HasPrefix(got.Unread[0], lacks) {
			t.Errorf("without %q: not read: %v", refused, got.Unread)
		}
		for what, c := range map[string]struct{ there, without bool }{
			"what it holds":     {len(got.Holds) == 1 && got.Holds[0].Nodes[0] == "n0", refused == "list leases"},
			"what it gave back": {len(got.Gave) == 1 && got.Gave[0].Reason == rqv1.ClosedNodeFailure, refused == "list leases"},
			"who cut it":        {len(got.CutBy) == 1 && got.CutBy[0].For == "rai/rich", refused == "list reservations"},
			"its events":        {len(got.Events) == 1 && got.Events[0].Reason == "Swapped", refused == "list events"},
			"where it lies": {len(got.Holds) > 0 && strings.Contains(got.Holds[0].Domain, "A"),
				refused == "list nodes" || refused == "list leases"},
		} {
			if c.there == c.without {
				t.Errorf("without %q, %s is told: %v", refused, what, c.there)
			}
		}
		if strings.Contains(said.Out, "n9") {
			t.Errorf("what an earlier Run of the name held is told of this one: %s", said.Out)
		}
		for i := 1; i < len(got.Story); i++ {
			if got.Story[i].Time.Before(&got.Story[i-1].Time) {
				t.Errorf("without %q the story is out of order: %+v", refused, got.Story)
			}
		}
	}
}

// TestVerifyPrefersAFile checks the record in a file whose name is also one of a Reservation in a namespace.
func TestVerifyPrefersAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	record := `{"apiVersion":"rq.davidlangworthy.io/v1","kind":"Reservation","metadata":{"name":"saved","namespace":"mm"}}`
	if err := os.Mkdir("rai", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("rai/rich-r0", []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	said := clitest.Do(t, clitest.NewServer(t, life()...), Command, "--verify", "rai/rich-r0")
	if !strings.Contains(said.Out, "mm/saved") {
		t.Errorf("%+v", said)
	}
}

// TestExplainWhatIsNotThere says what to do next.
func TestExplainWhatIsNotThere(t *testing.T) {
	for args, c := range map[string]struct {
		code int
		told string
	}{
		"trianer":                {session.ExitError, `Run "trianer" not found in namespace "rai"; "kubectl runs list -A"`},
		"--verify none":          {session.ExitError, `"kubectl get reservations -A" shows all`},
		"--verify /nowhere.yaml": {session.ExitError, "/nowhere.yaml"},
		"--verify rich-r0":       {session.ExitInvalid, ""},
		"--verify rai/rich-r0":   {session.ExitInvalid, "rai/rich-r0"},
		"--verify mm/rich-r0": {session.ExitError, `Reservation "rich-r0" not found in namespace "mm", nor is there a file ` +
			`mm/rich-r0; `},
		"-n mm --verify rai/rich-r0": {session.ExitUsage, `in namespace "rai", and -n says "mm": leave one of them out`},
		"--verify mm/none.yaml":      {session.ExitError, "cannot read mm/none.yaml"},
		"--verify ./none":            {session.ExitError, "cannot read ./none"},
		"--verify -n rai rich-r0":    {session.ExitUsage, "explain --verify RESERVATION -n NAMESPACE"},
		"--verify x trainer":         {session.ExitUsage, "leave out the Run"},
		"trainer -o table":           {session.ExitUsage, `"table" is not a format`},
	} {
		said := clitest.DoHere(t, clitest.NewServer(t, life()...), Command, strings.Fields(args)...)
		if said.Code != c.code || !strings.Contains(said.Out+said.Err, c.told) {
			t.Errorf("explain %s: %+v", args, said)
		}
	}
}
