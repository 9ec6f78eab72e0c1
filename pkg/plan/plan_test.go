package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

func TestDemand(t *testing.T) {
	spec := func(total int32, edit func(*rqv1.RunSpec)) *rqv1.RunSpec {
		s := &rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: total}}
		if edit != nil {
			edit(s)
		}
		return s
	}
	groups := func(gpus int32) func(*rqv1.RunSpec) {
		return func(s *rqv1.RunSpec) { s.Locality = &rqv1.RunLocality{GroupGPUs: &gpus} }
	}
	spares := func(gpus int32) func(*rqv1.RunSpec) { return func(s *rqv1.RunSpec) { s.Spares = &gpus } }
	malleable := func(least, most, step int32) func(*rqv1.RunSpec) {
		return func(s *rqv1.RunSpec) {
			s.Malleable = &rqv1.RunMalleable{MinTotalGPUs: least, MaxTotalGPUs: most, StepGPUs: step}
		}
	}
	both := func(first, second func(*rqv1.RunSpec)) func(*rqv1.RunSpec) {
		return func(s *rqv1.RunSpec) { first(s); second(s) }
	}
	for name, test := range map[string]struct {
		spec                   *rqv1.RunSpec
		templateGPUs, nodeGPUs int
		want                   string
	}{
		"largest size that fits a node": {spec(64, nil), 0, 8, "1 groups of 8 pods of 8"},
		"largest divisor":               {spec(12, nil), 0, 8, "1 groups of 2 pods of 6"},
		"prime":                         {spec(13, nil), 0, 8, "1 groups of 13 pods of 1"},
		"smaller than a node":           {spec(2, nil), 0, 8, "1 groups of 1 pods of 2"},
		"groups bound the size":         {spec(24, groups(12)), 0, 8, "2 groups of 2 pods of 6, confined"},
		"what the Run says": {spec(16, func(s *rqv1.RunSpec) { s.Resources.GPUsPerPod = ptr(int32(2)) }), 8,
			8, "1 groups of 8 pods of 2"},
		"what the template requests":      {spec(16, nil), 4, 8, "1 groups of 4 pods of 4"},
		"a template that does not divide": {spec(16, nil), 3, 8, "Indivisible: pods of 3 GPUs do not divide"},
		"no node of the type":             {spec(16, nil), 0, 0, "UnknownGPUType: no node has GPUs of type H100"},
		"a fixed size needs no node":      {spec(16, nil), 8, 0, "1 groups of 2 pods of 8"},
		"one domain": {
			spec(16, func(s *rqv1.RunSpec) { s.Locality = &rqv1.RunLocality{AllowCrossGroupSpread: ptr(false)} }), 0, 8,
			"1 groups of 2 pods of 8, one domain"},
		"a malleable Run starts at its total": {spec(32, malleable(16, 64, 16)), 0, 8, "1 groups of 4 pods of 8"},
		"steps bound the size":                {spec(32, malleable(16, 64, 4)), 0, 8, "1 groups of 8 pods of 4"},
		"so does the least width":             {spec(32, malleable(2, 64, 6)), 0, 8, "1 groups of 16 pods of 2"},
		"and pods of another size do not fit": {spec(32, malleable(4, 64, 4)), 8, 8,
			"Indivisible: pods of 8 GPUs do not divide groups of 32 and a total of 32 GPUs, a least width of 4 and steps of 4"},
		"spares": {spec(64, spares(8)), 0, 8, "1 groups of 8 pods of 8 and 1 spares"},
		"spares of each group": {spec(64, both(groups(16), spares(8))), 0, 8,
			"4 groups of 2 pods of 8 and 1 spares, confined"},
		"spares are rounded up to whole pods": {spec(128, both(groups(32), spares(1))), 0, 8,
			"4 groups of 4 pods of 8 and 1 spares, confined"},
		"no spares": {spec(16, spares(0)), 0, 8, "1 groups of 2 pods of 8"},
		"spares under their other name": {spec(16, func(s *rqv1.RunSpec) { s.SparesPerGroup = ptr(int32(4)) }), 0, 8,
			"1 groups of 2 pods of 8 and 1 spares"},
		"spares of more than a pod": {spec(16, spares(6)), 4, 8, "1 groups of 4 pods of 4 and 2 spares"},
		"an end": {spec(16, func(s *rqv1.RunSpec) {
			s.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Hour}}
		}), 0, 8, "1 groups of 2 pods of 8"},
		"opportunistic shards": {spec(16, func(s *rqv1.RunSpec) {
			s.Funding = &rqv1.RunFunding{AllowBorrow: true}
			s.Opportunistic = true
		}), 0, 8, "2 groups of 1 pods of 8, confined"},
	} {
		d, refusal := DemandOf(test.spec, test.templateGPUs, manyOf(test.nodeGPUs), nil)
		got := fmt.Sprintf("%d groups of %d pods of %d", d.Groups, d.PodsPerGroup, d.GPUsPerPod)
		if d.SparesPerGroup > 0 {
			got += fmt.Sprintf(" and %d spares", d.SparesPerGroup)
		}
		if d.Confined {
			got += ", confined"
		}
		if d.OneDomain {
			got += ", one domain"
		}
		if refusal != nil {
			got = fmt.Sprintf("%s: %s", refusal.Reason, refusal.Message)
		}
		if whole := refusal == nil; whole && got != test.want || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// manyOf is one domain of as many nodes of a size as anybody could want; of none where the size is 0.
func manyOf(gpus int) *topology.Blocks {
	if gpus == 0 {
		return topology.NewBlocks()
	}
	return topology.NewBlocks(map[int]int{gpus: 1 << 24})
}

// fleet has two domains of two nodes of 8 GPUs: A in the west and B in the east.
func fleet() *topology.Fleet {
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	for _, n := range []struct{ name, region, domain string }{{"a1", "west", "A"}, {"a2", "west", "A"},
		{"b1", "east", "B"}, {"b2", "east", "B"}} {
		f.SetNode(topology.Node{Name: n.name, Flavor: "H100", GPUs: 8, Beside: cpu(500),
			Labels: map[string]string{"region": n.region, "fabric.domain": n.domain}})
	}
	return f
}

func accounts(envelopes ...rqv1.Envelope) *budget.Accounts {
	a := budget.NewAccounts(budget.Rates{})
	for i := range envelopes {
		envelopes[i].Flavor = "H100"
	}
	a.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: rqv1.BudgetSpec{Owner: "org:a", Envelopes: envelopes}})
	return a
}

func all(d Demand) []Missing {
	out := make([]Missing, d.Pods())
	for i := range out {
		out[i].Index = i
	}
	return out
}

func west(gpus int32) rqv1.Envelope {
	return rqv1.Envelope{Name: "west", Concurrency: gpus, Selector: map[string]string{"region": "west"}}
}

func east(gpus int32) rqv1.Envelope {
	return rqv1.Envelope{Name: "east", Concurrency: gpus, Selector: map[string]string{"region": "east"}}
}

func TestCoverAndPackChooseTogether(t *testing.T) {
	groups := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 2, PodsPerGroup: 2, Confined: true}
	one := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 2, Confined: true}
	for name, test := range map[string]struct {
		demand   Demand
		accounts *budget.Accounts
		want     string
	}{
		"a domain that nobody pays for is no candidate": {one, accounts(east(16)), "0:b1:b/east 0:b2:b/east"},
		"two domains, two envelopes": {groups, accounts(west(16), east(16)),
			"0:b1:b/east 0:b2:b/east 1:a1:b/west 1:a2:b/west"},
		"too little in one of them": {groups, accounts(west(16), east(8)),
			"InsufficientBudget: budget of org:a is short by 8 of 32 GPUs (b/east: 0 of 8 GPUs in use; b/west: 0 of 16 " +
				"GPUs in use)"},
		"enough together, not where it is needed": {one, accounts(west(8), east(8)),
			"InsufficientBudget: budget of org:a is short by 8 of 16 GPUs (b/east: 0 of 8 GPUs in use; b/west: 0 of 8 " +
				"GPUs in use)"},
		"nobody": {one, budget.NewAccounts(budget.Rates{}),
			"NoBudget: no Budget of owner org:a, its family or a sponsor that lends to it has an envelope for GPUs of type " +
				"H100"},
		"closed window": {one, accounts(rqv1.Envelope{Name: "later", Concurrency: 16,
			Start: ptr(metav1.NewTime(noon.Add(time.Hour)))}),
			"WindowClosed: budget of org:a is short by 16 of 16 GPUs (b/later: its window opens at 2026-03-01T13:00:00Z)"},
		"what never fits is said before what nobody pays for": {
			Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 3, Confined: true}, accounts(west(8)),
			"NeverFits: a group needs 24 H100 GPUs in one domain, but at most 16 fit even when it is empty"},
	} {
		assignments, refusal := Gang(fleet(), test.accounts, test.demand, Claim{}, all(test.demand), nil, noon)
		var got []string
		for _, a := range assignments {
			got = append(got, fmt.Sprintf("%d:%s:%s", a.Group, a.Node, a.Payer))
		}
		if refusal != nil {
			got = []string{string(refusal.Reason) + ": " + refusal.Message}
		}
		if joined := strings.Join(got, " "); !strings.HasPrefix(joined, test.want) {
			t.Errorf("%s: %s, want %s", name, joined, test.want)
		}
	}
}

// Room is told from money: a Run that could be paid for lacks room where it is, whatever is free elsewhere; and money
// where no room there would help it.
func TestRoomIsShortWhereTheMoneyPays(t *testing.T) {
	one := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 2, Confined: true}
	anywhere := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 3}
	const short = "16 H100 GPUs are needed, and 8 fit now where a Budget pays for them: short by 8; there is room " +
		"elsewhere "
	for name, test := range map[string]struct {
		demand   Demand
		accounts *budget.Accounts
		reason   Reason
		message  string
	}{
		"no room in the place that is paid for": {one, accounts(east(16)), NoRoomWhereFunded,
			short + "(b/east pays for up to 16 on nodes with region=east)"},
		"little money elsewhere": {one, accounts(west(8), east(16)), NoRoomWhereFunded,
			short + "(b/east pays for up to 16 on nodes with region=east; b/west pays for up to 8 on nodes with region=west)"},
		"no place is paid for as a whole": {one, accounts(west(8), east(8)), InsufficientBudget,
			"budget of org:a is short by 8 of 16 GPUs (b/east: 0 of 8 GPUs in use; b/west: 0 of 8 GPUs in use)"},
		"pods that may lie anywhere": {anywhere, accounts(west(8), east(16)), NoRoomWhereFunded,
			"24 H100 GPUs are needed, and 16 fit now where a Budget pays for them: short by 8; there is room elsewhere " +
				"(b/east pays for up to 16 on nodes with region=east; b/west pays for up to 8 on nodes with region=west)"},
	} {
		f := fleet()
		f.Take("b1", 8)
		_, refusal := Gang(f, test.accounts, test.demand, Claim{}, all(test.demand), nil, noon)
		if refusal == nil || !refusal.Elsewhere || refusal.ShortGPUs != 8 ||
			refusal.LacksMoney() != (test.reason == InsufficientBudget) {
			t.Errorf("%s: refusal %+v", name, refusal)
			continue
		}
		if diff := cmp.Diff([]string{string(test.reason), test.message},
			[]string{string(refusal.Reason), refusal.Message}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRefusalIsData(t *testing.T) {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 2, Confined: true}
	f := fleet()
	f.Take("a1", 8)
	f.Take("b1", 4)
	_, refusal := Gang(f, accounts(west(16), east(16)), d, Claim{}, all(d), nil, noon)
	want := &Refusal{Reason: InsufficientGPUs, Owner: "org:a", Flavor: "H100", WantedGPUs: 16, ShortGPUs: 8}
	refusal.Message, refusal.Domain = "", ""
	if diff := cmp.Diff(want, refusal); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
	if !refusal.AboutRoom() {
		t.Errorf("a refusal for want of GPUs is about room")
	}
}

func TestSparesAreInTheirGroupsDomainAndPaidFor(t *testing.T) {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Groups: 2, PodsPerGroup: 2, SparesPerGroup: 1,
		Confined: true}
	missing := append(all(d), Missing{Part: rank.Part{Index: 0, Spare: true}},
		Missing{Part: rank.Part{Index: 1, Spare: true}})
	got, refusal := Gang(fleet(), accounts(west(16), east(16)), d, Claim{}, missing, nil, noon)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := []string{"0:0:b1", "0:1:b1", "0:spare 0:b2", "1:2:a1", "1:3:a1", "1:spare 1:a2"}
	if diff := cmp.Diff(want, places(got)); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
	_, refusal = Gang(fleet(), accounts(west(12), east(8)), d, Claim{}, missing, nil, noon)
	if refusal == nil || refusal.Reason != InsufficientBudget || refusal.WantedGPUs != 24 || refusal.ShortGPUs != 4 {
		t.Errorf("refusal %+v, want one of a budget that is short by 4 of 24 GPUs", refusal)
	}
}

func TestALoneSpareStandsApartFromItsGroup(t *testing.T) {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Groups: 2, PodsPerGroup: 1, SparesPerGroup: 1,
		Confined: true}
	f := fleet()
	f.Take("b1", 4)
	domain, _, _ := f.Domain("b1")
	got, refusal := Gang(f, accounts(east(16)), d, Claim{},
		[]Missing{{Part: rank.Part{Index: 1, Spare: true}, Domain: domain, Beside: []string{"b1"}}}, nil, noon)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if diff := cmp.Diff([]string{"1:spare 1:b2"}, places(got)); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
}

// places tells the group, pod and node of assignments.
func places(assignments []Assignment) []string {
	var out []string
	for _, a := range assignments {
		role := ""
		if a.Spare {
			role = "spare "
		}
		out = append(out, fmt.Sprintf("%d:%s%d:%s", a.Group, role, a.Index, a.Node))
	}
	return out
}

func TestMissingPodsJoinTheirGroup(t *testing.T) {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Groups: 2, PodsPerGroup: 2, Confined: true}
	f := fleet()
	f.Take("b1", 4)
	domain, _, _ := f.Domain("b1")
	got, refusal := Gang(f, accounts(west(16), east(16)), d, Claim{},
		[]Missing{{Part: rank.Part{Index: 3}, Domain: domain}}, nil, noon)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := []Assignment{{Part: rank.Part{Index: 3}, Group: 1, Node: "b1", Domain: domain,
		Payer: budget.Key{Budget: "b", Envelope: "east"}, Relation: rqv1.RelationOwn}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assignment (-want +got):\n%s", diff)
	}
}
