package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// used is an envelope of which so many GPUs are in use.
func used(name string, concurrency, gpus int32) envelopeOf {
	return sized(name, concurrency, rqv1.EnvelopeStatus{OwnedGPUs: gpus, HeadroomGPUs: concurrency - gpus})
}

// lending lends to some owners.
func lending(e envelopeOf, most int32, to ...rqv1.ACLEntry) envelopeOf {
	e.Lending = &rqv1.Lending{Allow: true, To: to, MaxConcurrency: &most}
	return e
}

// question asks who pays for a Run in pods of 8 GPUs, by some Budgets.
func question(run rqv1.Run, budgets ...rqv1.Budget) *payerQuestion {
	return &payerQuestion{run: run, budgets: budgets, size: podSize{stated: 8, from: "spec.template"},
		rates: budget.Rates{Spare: 500}, now: noon}
}

// aBorrower may borrow 8 GPUs from mm, needs 64 and has 24.
func aBorrower() *payerQuestion {
	run := runOf("big", 64, 32, waits("BorrowLimit", "borrow limit of 8 GPUs exhausted for requested width"))
	run.Spec.Funding = &rqv1.RunFunding{AllowBorrow: true, MaxBorrowGPUs: ptr(int32(8)), Sponsors: []rqv1.Owner{"org:mm"}}
	own := used("west-h100", 64, 52)
	own.Selector = map[string]string{"region": "us-west", "cluster": "*"}
	closed := used("night", 64, 0)
	closed.Start = ptr(after(8 * time.Hour))
	private := used("all", 32, 0)
	private.Sharing = rqv1.SharingNone
	return question(run,
		budgetOf("ai", "org:ai", used("reserve", 16, 8)),
		budgetOf("mm", "org:mm", lending(used("pool", 64, 0), 24, "org:ai:*"), used("closed", 8, 0)),
		budgetOf("other", "org:other", lending(used("pool", 16, 0), 16, "*")),
		budgetOf("private", "org:ai:secret", private),
		budgetOf("rai", "org:ai:rai", own, closed),
		budgetOf("rail", "org:rail", lending(used("pool", 16, 0), 16, "org:ai:vis*")),
	)
}

// aHolder runs on 16 GPUs, 8 of them paid by an envelope that is gone.
func aHolder() *payerQuestion {
	run := runOf("trainer", 16, 0, runs(16))
	gone := leaseOf(&run, "trainer-1", 0, "a2")
	gone.Spec.PaidByEnvelope = "removed"
	q := question(run, budgetOf("rai", "org:ai:rai", used("west-h100", 64, 8)))
	q.leases = []rqv1.Lease{leaseOf(&run, "trainer-0", 0, "a1"), gone}
	return q
}

func TestPayers(t *testing.T) {
	room := question(runOf("roomless", 16, 0, waits("InsufficientGPUs", "short by 8 of 16 GPUs")), budgetOf("rai", "org:ai:rai", used("all", 64, 8), used("more", 8, 0)))
	nobody := question(runOf("poor", 16, 0, waits("NoBudget", "owner org:ai:rai has no Budget")), budgetOf("mm", "org:mm", used("all", 64, 0)))
	nobody.size = podSize{}
	for name, q := range map[string]*payerQuestion{"payers-borrow": aBorrower(), "payers-running": aHolder(), "payers-room": room, "payers-nobody": nobody} {
		a, err := q.answer()
		if err != nil {
			t.Fatal(err)
		}
		if name == "payers-nobody" {
			a.Unread = []string{`nodes: User "bob" cannot list resource "nodes"`}
		}
		var text strings.Builder
		if err := writeAnswer(&text, a, name == "payers-running"); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
	a, err := aBorrower().answer()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := inFormat("json", &text, a); err != nil {
		t.Fatal(err)
	}
	golden(t, "payers-json", text.String())
}

// TestRemedies finds for each limit what would help, and by how much.
func TestRemedies(t *testing.T) {
	hours := func(spent, promised string, most int64, e envelopeOf) envelopeOf {
		e.MaxGPUHours, e.status.GPUHours = &most, &rqv1.GPUHours{Spent: spent, Promised: promised}
		return e
	}
	caps := func(b rqv1.Budget, caps ...rqv1.AggregateCap) rqv1.Budget {
		b.Spec.AggregateCaps = caps
		return b
	}
	run := runOf("big", 32, 0, waits("InsufficientBudget", "short"))
	long := *run.DeepCopy()
	long.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 10 * time.Hour}}
	elastic := *run.DeepCopy()
	elastic.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 64, StepGPUs: 8}
	guarded := runOf("guarded", 32, 16, waits("InsufficientBudget", "short"))
	guarded.Spec.SparesPerGroup = ptr(int32(8))
	borrows := *run.DeepCopy()
	borrows.Spec.Funding = &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{"org:mm"}}
	for name, c := range map[string]struct {
		run     rqv1.Run
		budgets []rqv1.Budget
		short   int
		want    []remedy
	}{
		"concurrency": {run, []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("all", 32, 8))}, 8,
			[]remedy{{"raise envelopes[all].concurrency of Budget rai from 32 to 40", 32}}},
		"concurrency, not a multiple of the pod": {run, []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("all", 30, 0))}, 8,
			[]remedy{{"raise envelopes[all].concurrency of Budget rai from 30 to 32", 32}}},
		"overdraft": {run, []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("all", 8, 12))}, 32,
			[]remedy{{"raise envelopes[all].concurrency of Budget rai from 8 to 44", 32}}},
		"spares": {guarded, []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("all", 40, 0))}, 8,
			[]remedy{{"raise envelopes[all].concurrency of Budget rai from 40 to 48", 48}}},
		"narrower will do": {elastic, []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("all", 24, 0))}, 0, nil},
		"not even the narrowest": {elastic, []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("all", 8, 0))}, 8,
			[]remedy{{"raise envelopes[all].concurrency of Budget rai from 8 to 16", 16}}},
		"GPU-hours for an hour": {run, []rqv1.Budget{budgetOf("rai", "org:ai:rai", hours("80.00000", "5.00000", 100, used("all", 64, 5)))}, 24,
			[]remedy{{"raise envelopes[all].maxGPUHours of Budget rai from 100 to 117", 32}}},
		"GPU-hours to the end": {long, []rqv1.Budget{budgetOf("rai", "org:ai:rai", hours("80.50000", "", 100, used("all", 64, 0)))}, 32,
			[]remedy{{"raise envelopes[all].maxGPUHours of Budget rai from 100 to 401", 32}}},
		"two limits": {run, []rqv1.Budget{caps(budgetOf("rai", "org:ai:rai", used("all", 16, 0)),
			rqv1.AggregateCap{Name: "lot", Flavor: "H100-80GB", Envelopes: []string{"all"}, MaxConcurrency: ptr(int32(24)), MaxGPUHours: ptr(int64(8))})}, 24,
			[]remedy{{"raise aggregateCaps[lot].maxGPUHours of Budget rai from 8 to 32, and envelopes[all].concurrency of Budget rai from 16 to 32, " +
				"and aggregateCaps[lot].maxConcurrency of Budget rai from 24 to 32", 32}}},
		"a lending limit": {borrows, []rqv1.Budget{budgetOf("mm", "org:mm", lending(used("pool", 64, 0), 16, "org:ai:rai"))}, 16,
			[]remedy{{"raise envelopes[pool].lending.maxConcurrency of Budget mm from 16 to 32", 32}}},
	} {
		a, err := question(c.run, c.budgets...).answer()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a.ShortGPUs != c.short {
			t.Errorf("%s: short by %d, want %d", name, a.ShortGPUs, c.short)
		}
		if diff := cmp.Diff(c.want, a.Remedies); diff != "" {
			t.Errorf("%s: remedies (-want +got):\n%s", name, diff)
		}
	}
}

func TestPodSize(t *testing.T) {
	node := func(gpuType, gpus string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"gpu.flavor": gpuType}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}}}
	}
	nodes := []corev1.Node{node("H100-80GB", "4"), node("H100-80GB", "8"), node("A100", "16")}
	if n := largestNode(nodes, "H100-80GB", &payerSearch{gpuResource: "nvidia.com/gpu", flavorLabel: "gpu.flavor"}); n != 8 {
		t.Errorf("the largest node has %d GPUs, want 8", n)
	}
	spares := runOf("spares", 64, 32, rqv1.RunStatus{})
	spares.Spec.Spares = ptr(int32(4))
	elastic := runOf("elastic", 24, 0, rqv1.RunStatus{})
	elastic.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 12, MaxTotalGPUs: 24, StepGPUs: 6}
	for name, c := range map[string]struct {
		run   rqv1.Run
		nodes int
		want  int
	}{
		"a group on several nodes":    {runOf("a", 64, 32, rqv1.RunStatus{}), 8, 8},
		"less than a node":            {runOf("b", 4, 0, rqv1.RunStatus{}), 8, 4},
		"divides what a node has not": {runOf("c", 12, 0, rqv1.RunStatus{}), 8, 6},
		"spares are whole pods":       {spares, 8, 4},
		"every width":                 {elastic, 8, 6},
		"no nodes":                    {runOf("d", 64, 32, rqv1.RunStatus{}), 0, 1},
	} {
		q := question(c.run)
		q.size = podSize{fits: c.nodes, from: "the nodes"}
		if err := q.shape(); err != nil || q.demand.GPUsPerPod != c.want {
			t.Errorf("%s: pods of %d GPUs, want %d: %v", name, q.demand.GPUsPerPod, c.want, err)
		}
	}
	odd := question(runOf("odd", 12, 0, rqv1.RunStatus{}))
	if err := odd.shape(); err == nil || !strings.Contains(err.Error(), "pods of 8 GPUs do not divide") {
		t.Errorf("pods of 8 GPUs for a Run of 12: %v", err)
	}
	stated := runOf("stated", 8, 0, rqv1.RunStatus{})
	stated.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}}}
	if size := templateSize(&stated, "nvidia.com/gpu"); size != (podSize{stated: 2, from: "spec.template"}) {
		t.Errorf("pods by the template: %+v", size)
	}
	stated.Spec.Resources.GPUsPerPod = ptr(int32(4))
	if size := templateSize(&stated, "nvidia.com/gpu"); size != (podSize{stated: 4, from: "spec.resources.gpusPerPod"}) {
		t.Errorf("pods by the Run: %+v", size)
	}
}
