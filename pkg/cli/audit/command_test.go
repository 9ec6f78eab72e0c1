package audit

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// orphan is an open GPU lease of a pod that is not there.
func orphan() []client.Object {
	run := clitest.RunOf("trainer", 8, 0, clitest.Runs(8))
	lease := clitest.As(clitest.LeaseOf(&run, "trainer-0-1f2e3d4c", 0, "n0"), rqv1.RoleActive, 0)
	lease.Labels[rqv1.LabelRun], lease.Labels[rqv1.LabelPodUID] = "trainer", "gone"
	return []client.Object{&run, &lease, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}}
}

// TestAudit looks at a whole cluster, twice: the exit code tells a script what to think of it.
func TestAudit(t *testing.T) {
	for name, c := range map[string]struct {
		objects []client.Object
		refuse  string
		answer  error
		code    int
		told    []string
	}{
		"all is well": {told: []string{"0 violations in 0 nodes"}},
		"an open GPU lease without a pod": {objects: orphan(), code: session.ExitError,
			told: []string{"I2", "Lease rai/trainer-0-1f2e3d4c", "of invariants"}},
		"pods that may not be listed": {refuse: "list pods", answer: clitest.Forbidden("list", "pods"),
			code: session.ExitUnread, told: []string{"an audit has to list pods", `cannot list resource "pods"`,
				"ClusterRole and the Role jobtree-auditor"}},
		"records that may not be listed": {refuse: "list configmaps", answer: clitest.Forbidden("list", "configmaps"),
			code: session.ExitUnread, told: []string{"an audit has to list ConfigMaps of settled GPU leases"}},
		"a record that is none": {objects: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: world.SchedulerNamespace, Name: "record-rai",
			Labels: map[string]string{rqv1.GroupName + "/record": "rai"}},
			Data: map[string]string{"record.json": "{"}}},
			code: session.ExitUnread, told: []string{"jobtree-system/record-rai"}},
		"an API server that does not know jobtree": {refuse: "list budgets", answer: clitest.NotServed,
			code: session.ExitUnread, told: []string{"kubectl apply -k manifests"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clitest.NewServer(t, c.objects...)
			server.Before = func(request string) error {
				if request == c.refuse {
					return c.answer
				}
				return nil
			}
			said := clitest.Do(t, server, Command, "--wait", "1s")
			for _, want := range c.told {
				if said.Code != c.code || !strings.Contains(said.Out+said.Err, want) {
					t.Errorf("lacks %q: %+v", want, said)
				}
			}
			if c.code == session.ExitUnread && said.Out != "" {
				t.Errorf("of a cluster that could not be read it is told: %q", said.Out)
			}
		})
	}
}

// TestAuditForPrograms names each invariant, also those that hold, and the objects that are meant.
func TestAuditForPrograms(t *testing.T) {
	t.Parallel()
	server := clitest.NewServer(t, orphan()...)
	said := clitest.Do(t, server, Command, "--wait", "1s", "-o", "json")
	var report auditReport
	if err := json.Unmarshal([]byte(said.Out), &report); err != nil || said.Code != session.ExitError {
		t.Fatalf("%v: %+v", err, said)
	}
	if n, told := report.Violations["I3"]; !told || n != 0 || report.Violations["I2"] == 0 {
		t.Errorf("%v", report.Violations)
	}
	if report.Read.Leases != 1 || report.Read.Nodes != 1 || report.Read.Runs != 1 || len(report.Unread) != 1 {
		t.Errorf("read: %+v, not read: %v", report.Read, report.Unread)
	}
}

// TestWhatComesToPassDuringAnAudit is no finding: the pod was there by the second look.
func TestWhatComesToPassDuringAnAudit(t *testing.T) {
	t.Parallel()
	objects := orphan()
	server := clitest.NewServer(t, objects...)
	looks := 0
	server.Before = func(request string) error {
		if request == "list budgets" {
			if looks++; looks == 2 {
				server.Delete(objects[1]) // it is closed, and settled
			}
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "--wait", "1s", "-o", "jsonpath={.violations.I2}")
	if said.Out != "0" || looks != 2 {
		t.Errorf("after %d looks: %+v", looks, said)
	}
}

func TestOneLookIsNotEnough(t *testing.T) {
	said := clitest.Do(t, clitest.NewServer(t), Command, "--wait", "10ms")
	if said.Code != session.ExitUsage || !strings.Contains(said.Err, "it must be at least 1s") {
		t.Errorf("%+v", said)
	}
}
