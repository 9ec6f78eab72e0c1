package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// sweep is the shape of a Run of as many shards of two GPUs.
func sweep(t *testing.T, shards int) plan.Demand {
	t.Helper()
	size := int32(2)
	d, refusal := plan.DemandOf(&rqv1.RunSpec{
		Owner: "org:a", Opportunistic: true, Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: int32(shards) * size,
			GPUsPerPod: &size},
	}, 0, topology.NewBlocks(map[int]int{8: 64}), nil)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return d
}

// purse is what org:a can pay from: one envelope that everything else uses up.
func purse(t *testing.T, rate string, hours *int64) *budget.Accounts {
	t.Helper()
	opportunistic, err := budget.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	a := budget.NewAccounts(budget.Rates{Opportunistic: opportunistic})
	a.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: rqv1.BudgetSpec{Owner: "org:a", Envelopes: []rqv1.Envelope{
			{Name: "e", Flavor: "H100", Concurrency: 0, MaxGPUHours: hours},
		}}})
	return a
}

func indexes(n int) []int {
	var out []int
	for i := range n {
		out = append(out, i)
	}
	return out
}

func TestFill(t *testing.T) {
	hours := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		rooms  []plan.Room
		shards int
		rate   string
		hours  *int64
		want   string
		short  plan.Reason
	}{
		"under spares, then where it is emptiest, then where Reservations intend to be": {
			rooms: []plan.Room{
				{Node: "n0", Idle: 2}, {Node: "n1", Idle: 4}, {Node: "n2", Idle: 8, Intended: true}, {Node: "n3", UnderSpares: 2},
			},
			shards: 8, rate: "0", want: "n3 n1 n1 n0 n2 n2 n2 n2",
		},
		"as many as fit": {
			rooms: []plan.Room{{Node: "n0", Idle: 3}, {Node: "n1", Idle: 1}}, shards: 2, rate: "0", want: "n0",
			short: plan.InsufficientGPUs,
		},
		"idle and spare GPUs of a node together": {
			rooms: []plan.Room{{Node: "n0", Idle: 1, UnderSpares: 1}}, shards: 1, rate: "0", want: "n0",
		},
		"GPU-hours do not matter at rate 0": {
			rooms: []plan.Room{{Node: "n0", Idle: 8}}, shards: 2, rate: "0", hours: hours(0), want: "n0 n0",
		},
		"as many as the next hour is paid for": {
			rooms: []plan.Room{{Node: "n0", Idle: 8}}, shards: 4, rate: "0.5", hours: hours(3), want: "n0 n0 n0",
			short: plan.InsufficientGPUHours,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, refusal := plan.Fill(purse(t, test.rate, test.hours), sweep(t, test.shards), plan.Claim{}, indexes(test.shards),
				test.rooms, noon)
			var nodes []string
			for i, a := range got {
				if a.Index != i || a.Payer != (budget.Key{Budget: "a", Envelope: "e"}) {
					t.Errorf("shard %d is paid by %v", a.Index, a.Payer)
				}
				nodes = append(nodes, a.Node)
			}
			if diff := cmp.Diff(test.want, strings.Join(nodes, " ")); diff != "" {
				t.Error(diff)
			}
			var short plan.Reason
			if refusal != nil {
				short = refusal.Reason
			}
			if diff := cmp.Diff(test.short, short); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFillWithoutABudget(t *testing.T) {
	got, refusal := plan.Fill(budget.NewAccounts(budget.Rates{}), sweep(t, 1), plan.Claim{}, []int{0},
		[]plan.Room{{Node: "n0", Idle: 8}}, noon)
	if len(got) > 0 || refusal == nil || refusal.Reason != plan.NoBudget {
		t.Errorf("%v, %v", got, refusal)
	}
}

func TestReclaim(t *testing.T) {
	shard := func(age, gpus int, leaving bool) plan.Shard {
		return plan.Shard{Key: fmt.Sprint(age), GPUs: gpus, Since: noon.Add(-time.Duration(age) * time.Minute),
			Leaving: leaving}
	}
	tests := map[string]struct {
		shards []plan.Shard
		gpus   int
		want   []int
	}{
		"the youngest": {[]plan.Shard{shard(3, 2, false), shard(1, 2, false), shard(2, 2, false)}, 3,
			[]int{1, 2}},
		"none when enough leave":    {[]plan.Shard{shard(1, 2, false), shard(2, 4, true)}, 4, nil},
		"those that leave count":    {[]plan.Shard{shard(1, 2, false), shard(2, 2, true), shard(3, 2, false)}, 4, []int{0}},
		"all when they are too few": {[]plan.Shard{shard(1, 2, false), shard(2, 2, false)}, 8, []int{0, 1}},
		"by key among those together": {[]plan.Shard{{Key: "a", GPUs: 1, Since: noon}, {Key: "b", GPUs: 1, Since: noon}}, 1,
			[]int{1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.Reclaim(test.shards, test.gpus)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShards(t *testing.T) {
	spec := func(change func(*rqv1.RunSpec)) *rqv1.RunSpec {
		s := &rqv1.RunSpec{Owner: "org:a", Opportunistic: true, Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 16}}
		change(s)
		return s
	}
	n := func(n int32) *int32 { return &n }
	tests := map[string]struct {
		change func(*rqv1.RunSpec)
		want   string
	}{
		"as large as divides the total": {func(*rqv1.RunSpec) {}, "2 of 8"},
		"as the Run says":               {func(s *rqv1.RunSpec) { s.Resources.GPUsPerPod = n(2) }, "8 of 2"},
		"a group each": {func(s *rqv1.RunSpec) { s.Locality = &rqv1.RunLocality{GroupGPUs: n(4)} },
			"4 of 4"},
		"as many as it desires": {func(s *rqv1.RunSpec) {
			s.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 2, MaxTotalGPUs: 16, StepGPUs: 2, DesiredTotalGPUs: n(6)}
		}, "3 of 2"},
		"not more pods than one": {func(s *rqv1.RunSpec) {
			s.Resources.GPUsPerPod, s.Locality = n(2), &rqv1.RunLocality{GroupGPUs: n(4)}
		}, "Indivisible"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, refusal := plan.DemandOf(spec(test.change), 0, topology.NewBlocks(map[int]int{8: 64}), nil)
			got := fmt.Sprintf("%d of %d", d.Pods(), d.GPUsPerPod)
			if refusal != nil {
				got = string(refusal.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
