package budgets

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// watched is a Budget that the scheduler has looked at just now.
func watched(name string, owner rqv1.Owner) *rqv1.Budget {
	b := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: rqv1.BudgetSpec{Owner: owner,
		Envelopes: []rqv1.Envelope{{Name: "west", Flavor: "H100", Concurrency: 64}}}}
	b.Status.ObservedGeneration, b.Status.ObservedAt = 1, clitest.Ptr(clitest.After(3600e9))
	b.Status.Envelopes = []rqv1.EnvelopeStatus{{Name: "west", OwnedGPUs: 16}}
	return b
}

// TestUsageInEveryFormat shows the Budgets that are asked for, in every format, and says which have not been looked at.
func TestUsageInEveryFormat(t *testing.T) {
	stale := watched("stale", "org:mm")
	stale.Generation = 2
	server := clitest.NewServer(t, watched("rai", "org:ai:rai"), watched("ai", "org:ai"), stale)
	for args, want := range map[string]struct{ out, err []string }{
		"-o name": {out: []string{"budget.rq.davidlangworthy.io/rai",
			"budget.rq.davidlangworthy.io/stale"}},
		"--owner org:ai -o name": {out: []string{"budget.rq.davidlangworthy.io/ai"}},
		"--owner org:ai* -o name": {out: []string{"budget.rq.davidlangworthy.io/ai",
			"budget.rq.davidlangworthy.io/rai"}},
		"-o jsonpath={.envelopes[*].budget}": {out: []string{"ai rai stale"}},
		"": {out: []string{"rai", "stale"}, err: []string{"has not processed the latest version",
			"stale"}},
		"--tree --owner org:ai*": {out: []string{"org:ai", "rai"}},
		"--owner org:none": {err: []string{"No Budgets of owner org:none found",
			"kubectl runs budgets usage"}},
	} {
		said := clitest.Do(t, server, Command, append([]string{"usage"}, strings.Fields(args)...)...)
		for _, text := range want.out {
			if said.Code != 0 || !strings.Contains(said.Out, text) {
				t.Errorf("usage %s lacks %q: %+v", args, text, said)
			}
		}
		for _, text := range want.err {
			if !strings.Contains(said.Err, text) {
				t.Errorf("usage %s does not warn of %q: %+v", args, text, said)
			}
		}
		if want.err == nil && said.Err != "" || strings.Contains(args, "--owner") && strings.Contains(said.Out, "stale") {
			t.Errorf("usage %s: %+v", args, said)
		}
	}
	if said := clitest.Do(t, server, Command, "usage", "--tree", "-o", "json"); said.Code != session.ExitUsage {
		t.Errorf("a tree for programs: %+v", said)
	}
}

// TestUsageWithoutBudgets tells a person that there are none, and a program nothing but that.
func TestUsageWithoutBudgets(t *testing.T) {
	server := clitest.NewServer(t)
	if diff := cmp.Diff(clitest.Said{Err: "No Budgets found.\n"}, clitest.Do(t, server, Command, "usage")); diff != "" {
		t.Error(diff)
	}
	if said := clitest.Do(t, server, Command, "usage", "-o", "jsonpath={.envelopes}"); said.Out != "[]" || said.Err != "" {
		t.Errorf("%+v", said)
	}
	server.Before = func(string) error { return clitest.Forbidden("list", "budgets") }
	if said := clitest.Do(t, server, Command, "usage"); said.Code != session.ExitError ||
		!strings.Contains(said.Err, `cannot list resource "budgets"`) {
		t.Errorf("%+v", said)
	}
}

// TestWhoIsAskedToPay answers for a Run that is there, and says which is not.
func TestWhoIsAskedToPay(t *testing.T) {
	run := clitest.RunOf("trainer", 16, 0, clitest.Poor())
	run.Spec.Resources.GPUType = "H100"
	server := clitest.NewServer(t, []client.Object{&run, watched("rai", "org:ai:rai")}...)
	if said := clitest.Do(t, server, Command, "explain", "trainer"); said.Code != 0 || !strings.Contains(said.Out, "rai") {
		t.Errorf("%+v", said)
	}
	said := clitest.Do(t, server, Command, "explain", "trianer")
	if said.Code != session.ExitError || !strings.Contains(said.Err, `Run "trianer" not found in namespace "rai"`) {
		t.Errorf("%+v", said)
	}
}
