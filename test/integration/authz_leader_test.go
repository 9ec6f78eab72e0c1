package integration

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/fence"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// TestOnlyTheLeaderOpensLeases writes GPU leases as schedulers do, with and without an election, and holds an election.
func TestOnlyTheLeaderOpensLeases(t *testing.T) {
	const ns, is = "authz-leader", controlplane.Namespace + "/" + controlplane.SchedulerLease + "/"
	makeNamespace(t, ns)
	open := func(by rest.ImpersonationConfig, writer string) error {
		lease := someLease(ns, "probe")
		if writer != "" {
			lease.Annotations = map[string]string{rqv1.AnnotationWrittenBy: writer}
		}
		return actAs(t, by).Create(t.Context(), lease, client.DryRunAll)
	}
	waitAllowed(t, schedulerAccount, access{"create", rqv1.GroupName, "leases", ns, ""})
	if err := open(schedulerAccount, is+"a"); err != nil {
		t.Errorf("before there is an election: %v", err)
	}
	admin, first := actAs(t, rest.ImpersonationConfig{}), "a"
	election := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.Namespace, Name: controlplane.SchedulerLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &first},
	}
	install(t, election)
	policyEnforced(t, fence.Policy, func() error { return open(schedulerAccount, is+"b") })
	checked := func(leader, other string) {
		t.Helper()
		for what, c := range map[string]struct {
			by     rest.ImpersonationConfig
			writer string
		}{
			"the leader":                         {schedulerAccount, is + leader},
			"a scheduler without an election":    {schedulerAccount, ""},
			"one of an election that is another": {schedulerAccount, "elsewhere/jobtree-scheduler/" + other},
			"an administrator who puts it back":  {scheduler, is + other},
		} {
			if err := open(c.by, c.writer); err != nil {
				t.Errorf("while %q leads, %s: %v", leader, what, err)
			}
		}
		err := open(schedulerAccount, is+other)
		refused(t, "a GPU lease of "+other, err, "'"+fence.Policy+"'", other+" does not lead, "+leader+
			" does: only the scheduler that leads opens GPU leases")
		if err != nil && !fence.Outrun(err) {
			t.Errorf("a scheduler would not know the answer for what it is: %v", err)
		}
	}
	checked("a", "b")
	leads := func(who string) {
		t.Helper()
		election.Spec.HolderIdentity = &who
		if err := admin.Update(t.Context(), election); err != nil {
			t.Fatal(err)
		}
	}
	leads("b")
	began := time.Now()
	eventually(t, "the API server is to hear of the election", func() error { return open(schedulerAccount, is+"b") })
	t.Logf("the API server has heard of an election within %v", time.Since(began).Round(time.Millisecond))
	checked("b", "a")
	leads("") // as a scheduler does that is told to end
	policyEnforced(t, fence.Policy, func() error { return open(schedulerAccount, is+"b") })
	refused(t, "a GPU lease while nobody leads", open(schedulerAccount, is+"b"), "b does not lead, nobody does")
}
