package integration

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// audited is what "kubectl runs audit -o json" says that matters here.
type audited struct {
	Read       struct{ Nodes, Pods, Runs, Budgets, Leases, Reservations int }
	Violations map[string]int
	Findings   []struct {
		Invariant, Level, Message, Remedy string
		Objects                           []struct{ Kind, Namespace, Name string }
	}
}

// audit runs the command, and fails the test unless it ends with an exit code.
func (s *site) audit(code int) audited {
	s.t.Helper()
	said := command(s.t, s.ControlPlane, "", "runs audit --wait 2s -o json")
	if said.code != code {
		s.t.Fatalf("exit code %d, want %d: %s%s", said.code, code, said.err, said.out)
	}
	var out audited
	if err := json.Unmarshal([]byte(said.out), &out); err != nil {
		s.t.Fatalf("%v in %s", err, said.out)
	}
	return out
}

// TestAudit has a mixed load audited, then corrupts one object behind the back of a scheduler that is down.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, nil), 2, 4, 80)
	s.startScheduler()
	spares := int32(8)
	s.submit("train", 16, inPods(8), inGroups(16), func(r *rqv1.Run) { r.Spec.SparesPerGroup = &spares })
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("shards", 4, inPods(2), func(r *rqv1.Run) { r.Spec.Opportunistic = true })
	s.await("shards", rqv1.RunRunning, "")
	s.submit("waits", 48, inPods(8))
	s.awaitReservation("waits", func(*rqv1.Reservation) error { return nil })
	s.submit("gone", 8, inPods(8))
	s.await("gone", rqv1.RunRunning, "bound 8 GPUs")
	s.removeRun("gone")
	s.awaitGone("gone")
	s.settled()

	found := s.audit(0)
	if len(found.Findings) > 0 || found.Violations["I1"] != 0 || len(found.Violations) != 13 {
		t.Errorf("found %+v", found)
	}
	if r := found.Read; r.Nodes != 8+len(sim.Machines()) || r.Runs != 3 || r.Budgets != 1 || r.Leases < 6 ||
		r.Reservations == 0 {
		t.Errorf("read %+v", r)
	}
	if out := s.runs("audit --wait 1s"); !strings.Contains(out, "0 violations in 11 nodes, ") {
		t.Errorf("printed %q", out)
	}
	bob := command(t, s.ControlPlane, "", "runs audit --as bob")
	if bob.code != 7 || !strings.Contains(bob.err, "ClusterRole and the Role jobtree-auditor") {
		t.Errorf("to somebody without rights: exit code %d: %s", bob.code, bob.err)
	}
	s.auditsAsAuditor()

	if err := s.cluster.Scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	s.forge("train")
	found = s.audit(1)
	var got []string
	for _, f := range found.Findings {
		got = append(got, f.Invariant)
	}
	if !slices.Equal(slices.Compact(got), []string{"I2", "I8"}) || found.Findings[0].Objects[0].Name != "forged" ||
		!strings.Contains(found.Findings[0].Message, "GPU lease audit/forged is open and holds 4 GPUs") {
		t.Errorf("found %+v", found)
	}
	if text := command(t, s.ControlPlane, "", "runs audit --wait 1s"); text.code != 1 ||
		!strings.Contains(text.out, "Lease audit/forged") {
		t.Errorf("exit code %d, printed %s", text.code, text.out)
	}
	s.startScheduler() // which finds no such pod, and closes the Lease
}

// forge writes an open Lease of a Run that no pod has, as only the scheduler may, on a node where nobody ever was.
func (s *site) forge(run string) {
	s.t.Helper()
	w, err := s.look(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	lease := w.leases[0].DeepCopy()
	for _, l := range w.leases {
		delete(w.nodes, l.Node())
		if l.Spec.RunRef.Name == run {
			lease.Spec = *l.Spec.DeepCopy()
		}
	}
	lease.TypeMeta = metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Lease"}
	lease.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: "forged",
		Labels: map[string]string{rqv1.LabelRun: run, rqv1.LabelIndex: "0", rqv1.LabelPodUID: "nobody"}}
	lease.Spec.Slice = rqv1.LeaseSlice{Role: rqv1.RoleActive,
		Nodes: []rqv1.NodeGPUs{{Name: slices.Min(slices.Collect(maps.Keys(w.nodes))), GPUs: 4}}}
	lease.Status = rqv1.LeaseStatus{}
	text, err := json.Marshal(lease)
	if err != nil {
		s.t.Fatal(err)
	}
	mustCommand(s.t, s.ControlPlane, string(text),
		"create -f - --as system:serviceaccount:jobtree-system:jobtree-scheduler --as-group system:masters")
}
