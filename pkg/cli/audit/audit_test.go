package audit

import (
	"strings"
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// TestAuditText prints what was found for people, and nothing but a sum where nothing was.
func TestAuditText(t *testing.T) {
	lease := audit.Object{Kind: "Lease", Namespace: "rai", Name: "train-0-1f2e3d4c"}
	report := &auditReport{At: clitest.After(0), Read: auditRead{Nodes: 4, Pods: 1, Runs: 2, Budgets: 1, Leases: 7},
		Findings: []audit.Finding{
			{Invariant: "I1", Level: audit.Information, Objects: []audit.Object{{Kind: "Node", Name: "n0"}, lease},
				Message: "node n0 has lost a GPU", Remedy: "Nothing."},
			{Invariant: "I2", Level: audit.Violation, Objects: []audit.Object{lease},
				Message: "GPU lease rai/train-0-1f2e3d4c is open and there is no such pod", Remedy: "Delete the pod."},
			{Invariant: "I2", Level: audit.Violation, Objects: []audit.Object{lease}, Message: "another",
				Remedy: "Delete the pod."},
		}}
	report.Violations = audit.Count(report.Findings)
	for name, wide := range map[string]bool{"audit": false, "audit-wide": true} {
		var text strings.Builder
		if err := writeAudit(&text, report, session.Form{Wide: wide}); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
	var text strings.Builder
	report.Findings = nil
	report.Violations = audit.Count(nil)
	if err := writeAudit(&text, report, session.Form{}); err != nil {
		t.Fatal(err)
	}
	if want := "0 violations in 4 nodes, 1 pod, 2 Runs, 1 Budget, 0 Reservations, 7 GPU leases and 0 records of " +
		"settled GPU leases\n"; text.String() != want {
		t.Errorf("printed %q, want %q", text.String(), want)
	}
}
