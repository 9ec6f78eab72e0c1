package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// addDomain adds a domain of nodes of so many GPUs each, with changes.
func (s *site) addDomain(domain string, count int, gpus int64, changes ...func(*corev1.Node)) {
	s.t.Helper()
	var nodes []corev1.Node
	for i := range count {
		node := s.node(fmt.Sprintf("%s-%d", domain, i), domain)
		node.Status.Allocatable[gpuResource] = *resource.NewQuantity(gpus, resource.DecimalSI)
		node.Status.Capacity[gpuResource] = *resource.NewQuantity(gpus, resource.DecimalSI)
		for _, change := range changes {
			change(node)
		}
		nodes = append(nodes, *node)
	}
	s.load(nodes...)
}

// on has the pods of a Run go to nodes of a domain.
func (s *site) on(domain string) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		template(r).Spec.NodeSelector = map[string]string{"fabric.domain": s.namespace + "-" + domain}
	}
}

// malleable gives a Run a range of widths.
func malleable(least, most, step int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		r.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: least, MaxTotalGPUs: most, StepGPUs: step}
	}
}

// opportunistic makes a Run one of shards.
func opportunistic(r *rqv1.Run) { r.Spec.Opportunistic = true }

// TestLoweredBudget is worked example 1: a team's Budget is cut below what its Runs hold. Nothing stops, what no longer
// fits is overdraft, the youngest first, and nothing new is funded until the Budget is raised again.
func TestLoweredBudget(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("d", 18, 4)
	s.fund("a", s.envelope("all", 48))
	s.fund("b", s.envelope("all", 24))
	s.submit("j1", 32, s.by("a"))
	s.await("j1", rqv1.RunRunning, "bound 32 GPUs")
	s.submit("j2", 24, s.by("b"), malleable(8, 24, 8))
	s.await("j2", rqv1.RunRunning, "bound 24 GPUs")
	s.submit("j3", 2, s.by("a"))
	s.await("j3", rqv1.RunRunning, "bound 2 GPUs")
	s.awaitEnvelopes("a", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 34})
	s.awaitEnvelopes("b", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 24})
	s.submit("idle", 14, s.by("a"), inPods(2))
	s.await("idle", rqv1.RunRunning, "bound 14 GPUs")
	s.removeRun("idle")
	s.awaitGone("idle")
	before := []map[string]string{s.versions("j1"), s.versions("j2"), s.versions("j3")}

	s.amend("a", func(e *rqv1.Envelope) { e.Concurrency = 24 })
	s.awaitEnvelopes("a", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 24, OverdraftGPUs: 10})
	overdrawn := s.awaitBudgetCondition("a", rqv1.ConditionOverdrawn, metav1.ConditionTrue, "ConcurrencyExceeded")
	if !strings.Contains(overdrawn.Message, "all: 10 GPUs") {
		t.Errorf("Budget a says %q", overdrawn.Message)
	}
	s.awaitFunding("j1", 24, s.sponsor("a", 8, "overdraft"))
	s.awaitFunding("j3", 0, s.sponsor("a", 2, "overdraft"))
	s.awaitFunding("j2", 24)
	s.awaitOverdraft("j1", metav1.ConditionTrue)
	s.awaitOverdraft("j3", metav1.ConditionTrue)
	s.submit("j5", 2, s.by("a"))
	s.awaitRefusal("j5", "InsufficientBudget", "34 of 24 GPUs in use")
	s.settled()

	s.amend("a", func(e *rqv1.Envelope) { e.Concurrency = 48 })
	s.awaitBudgetCondition("a", rqv1.ConditionOverdrawn, metav1.ConditionFalse, "WithinLimits")
	s.awaitOverdraft("j1", metav1.ConditionFalse)
	s.awaitOverdraft("j3", metav1.ConditionFalse)
	s.awaitFunding("j1", 32)
	s.awaitFunding("j3", 2)
	s.await("j5", rqv1.RunRunning, "bound 2 GPUs")
	s.awaitEnvelopes("a", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 36})
	if diff := cmp.Diff(before, []map[string]string{s.versions("j1"), s.versions("j2"), s.versions("j3")}); diff != "" {
		t.Errorf("pods and Leases were touched: %s", diff)
	}
	s.settled()
}

// TestFamilyPays is worked example 2: owners, siblings and ancestors pay in this order, each to its limit.
func TestFamilyPays(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("a", 18, 4)
	s.addDomain("b", 18, 4)
	for path, gpus := range map[string]int32{
		"ai": 120, "ai:rai": 64, "ai:rai:al": 48, "ai:rai:sys": 16, "ai:mm": 40, "ai:mm:vis": 28, "ai:mm:aud": 12,
	} {
		s.fund(path, s.envelope("all", gpus))
	}
	s.submit("ra1", 64, s.by("ai:rai:al"), s.on("a"), inPods(4), func(r *rqv1.Run) { r.Spec.Spares = ptr.To[int32](8) })
	s.await("ra1", rqv1.RunRunning, "bound 64 GPUs")
	s.submit("ra2", 16, s.by("ai:rai:sys"), s.on("b"), malleable(16, 48, 8), desiring(16))
	s.await("ra2", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("mm1", 48, s.by("ai:mm:vis"), s.on("b"))
	s.await("mm1", rqv1.RunRunning, "bound 48 GPUs")
	s.submit("mm2", 4, s.by("ai:mm:aud"), s.on("b"))
	s.await("mm2", rqv1.RunRunning, "bound 4 GPUs")

	s.paidBy("ra1", map[string]int32{
		"ai:rai:al/all own Active": 48, "ai:rai:sys/all sibling Active": 16, "ai:rai/all ancestor Spare": 8,
	})
	s.paidBy("ra2", map[string]int32{"ai:rai/all ancestor Active": 16})
	s.paidBy("mm1", map[string]int32{
		"ai:mm:vis/all own Active": 28, "ai:mm:aud/all sibling Active": 12, "ai:mm/all ancestor Active": 8,
	})
	s.paidBy("mm2", map[string]int32{"ai:mm/all ancestor Active": 4})
	s.awaitFunding("ra1", 48, s.sponsor("ai:rai", 8, "ancestor"), s.sponsor("ai:rai:sys", 16, "sibling"))
	s.awaitFunding("ra2", 0, s.sponsor("ai:rai", 16, "ancestor"))
	s.awaitFunding("mm1", 28, s.sponsor("ai:mm", 8, "ancestor"), s.sponsor("ai:mm:aud", 12, "sibling"))
	s.awaitFunding("mm2", 0, s.sponsor("ai:mm", 4, "ancestor"))
	for path, want := range map[string]rqv1.EnvelopeStatus{
		"ai":         {},
		"ai:rai":     {FamilyGPUs: 16, SpareGPUs: 8},
		"ai:rai:al":  {OwnedGPUs: 48},
		"ai:rai:sys": {FamilyGPUs: 16},
		"ai:mm":      {FamilyGPUs: 12},
		"ai:mm:vis":  {OwnedGPUs: 28},
		"ai:mm:aud":  {FamilyGPUs: 12},
	} {
		want.Name = "all"
		s.awaitEnvelopes(path, want)
	}
	s.settled()
}

// TestSponsorPays is worked example 5: a sponsor pays for the group that the owner cannot, which is the highest.
func TestSponsorPays(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("a", 12, 8)
	s.addDomain("b", 4, 8)
	s.fund("ai:rai", s.envelope("all", 96))
	s.fund("ai:mm:vision", s.envelope("all", 64, s.lends(64, "ai:rai")))
	vision := s.from(32, "ai:mm:vision")
	s.submit("narrow", 128, s.by("ai:rai"), inGroups(32), s.from(16, "ai:mm:vision"))
	s.awaitRefusal("narrow", "BorrowLimit", "borrow limit of 16 GPUs exhausted for requested width")
	s.removeRun("narrow")
	s.submit("train", 128, s.by("ai:rai"), inGroups(32), malleable(96, 128, 32), vision)
	s.await("train", rqv1.RunRunning, "bound 128 GPUs")
	s.awaitFunding("train", 96, s.sponsor("ai:mm:vision", 32, "sponsor"))
	s.awaitEnvelopes("ai:rai", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 96})
	s.awaitEnvelopes("ai:mm:vision", rqv1.EnvelopeStatus{Name: "all", LentGPUs: 32, LendingGPUs: 32})
	for _, lease := range s.leasesOf("train") {
		payer := map[bool]rqv1.Owner{true: s.of("ai:mm:vision"), false: s.of("ai:rai")}[lease.Spec.GroupIndex == 3]
		if lease.Spec.Payer.Owner != payer {
			t.Errorf("a Lease of group %d is paid by %s", lease.Spec.GroupIndex, lease.Spec.Payer.Owner)
		}
	}
	s.settled()
}
