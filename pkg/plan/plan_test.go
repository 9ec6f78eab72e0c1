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
	for name, test := range map[string]struct {
		spec                   *rqv1.RunSpec
		templateGPUs, nodeGPUs int
		want                   string
	}{
		"largest size that fits a node":   {spec(64, nil), 0, 8, "1 groups of 8 pods of 8"},
		"largest divisor":                 {spec(12, nil), 0, 8, "1 groups of 2 pods of 6"},
		"prime":                           {spec(13, nil), 0, 8, "1 groups of 13 pods of 1"},
		"smaller than a node":             {spec(2, nil), 0, 8, "1 groups of 1 pods of 2"},
		"groups bound the size":           {spec(24, groups(12)), 0, 8, "2 groups of 2 pods of 6, confined"},
		"what the Run says":               {spec(16, func(s *rqv1.RunSpec) { s.Resources.GPUsPerPod = ptr(int32(2)) }), 8, 8, "1 groups of 8 pods of 2"},
		"what the template requests":      {spec(16, nil), 4, 8, "1 groups of 4 pods of 4"},
		"a template that does not divide": {spec(16, nil), 3, 8, "Indivisible: pods of 3 GPUs do not divide"},
		"no node of the type":             {spec(16, nil), 0, 0, "UnknownGPUType: no node has GPUs of type H100"},
		"a fixed size needs no node":      {spec(16, nil), 8, 0, "1 groups of 2 pods of 8"},
		"one domain":                      {spec(16, func(s *rqv1.RunSpec) { s.Locality = &rqv1.RunLocality{AllowCrossGroupSpread: ptr(false)} }), 0, 8, "1 groups of 2 pods of 8, one domain"},
		"malleable":                       {spec(16, func(s *rqv1.RunSpec) { s.Malleable = &rqv1.RunMalleable{} }), 0, 8, "Unsupported: spec.malleable is not served"},
		"spares":                          {spec(16, func(s *rqv1.RunSpec) { s.Spares = ptr(int32(1)) }), 0, 8, "Unsupported: spec.sparesPerGroup"},
		"no spares":                       {spec(16, func(s *rqv1.RunSpec) { s.Spares = ptr(int32(0)) }), 0, 8, "1 groups of 2 pods of 8"},
		"borrowing, duration and opportunistic": {spec(16, func(s *rqv1.RunSpec) {
			s.Funding = &rqv1.RunFunding{AllowBorrow: true}
			s.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Hour}}
			s.Opportunistic = true
		}), 0, 8, "Unsupported: spec.runtime.maxDuration, spec.opportunistic"},
	} {
		d, refusal := DemandOf(test.spec, test.templateGPUs, test.nodeGPUs)
		got := fmt.Sprintf("%d groups of %d pods of %d", d.Groups, d.PodsPerGroup, d.GPUsPerPod)
		if d.Confined {
			got += ", confined"
		}
		if d.OneDomain {
			got += ", one domain"
		}
		if refusal != nil {
			got = fmt.Sprintf("%s: %s", refusal.Reason, refusal.Message)
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// fleet has two domains of two nodes of 8 GPUs: A in the west and B in the east.
func fleet() *topology.Fleet {
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	for _, n := range []struct{ name, region, domain string }{{"a1", "west", "A"}, {"a2", "west", "A"}, {"b1", "east", "B"}, {"b2", "east", "B"}} {
		f.SetNode(topology.Node{Name: n.name, Flavor: "H100", GPUs: 8, Labels: map[string]string{"region": n.region, "fabric.domain": n.domain}})
	}
	return f
}

func accounts(envelopes ...rqv1.Envelope) *budget.Accounts {
	a := budget.NewAccounts(budget.Rates{})
	for i := range envelopes {
		envelopes[i].Flavor = "H100"
	}
	a.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: rqv1.BudgetSpec{Owner: "org:a", Envelopes: envelopes}})
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
		"two domains, two envelopes":                    {groups, accounts(west(16), east(16)), "0:b1:b/east 0:b2:b/east 1:a1:b/west 1:a2:b/west"},
		"too little in one of them": {groups, accounts(west(16), east(8)),
			"InsufficientBudget: budget of org:a is short by 8 of 32 GPUs (b/east: 0 of 8 GPUs in use; b/west: 0 of 16 GPUs in use)"},
		"enough together, not where it is needed": {one, accounts(west(8), east(8)),
			"InsufficientBudget: budget of org:a is short by 8 of 16 GPUs (b/east: 0 of 8 GPUs in use; b/west: 0 of 8 GPUs in use)"},
		"nobody": {one, budget.NewAccounts(budget.Rates{}), "NoBudget: owner org:a has no Budget with an envelope of flavor H100"},
		"closed window": {one, accounts(rqv1.Envelope{Name: "later", Concurrency: 16, Start: ptr(metav1.NewTime(noon.Add(time.Hour)))}),
			"WindowClosed: budget of org:a is short by 16 of 16 GPUs (b/later: its window opens at 2026-03-01T13:00:00Z)"},
		"what never fits is said before what nobody pays for": {
			Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 3, Confined: true}, accounts(west(8)),
			"NeverFits: a group needs 24 H100 GPUs in one domain and at most 16 fit even when it is empty"},
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

func TestMissingPodsJoinTheirGroup(t *testing.T) {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Groups: 2, PodsPerGroup: 2, Confined: true}
	f := fleet()
	f.Take("b1", 4)
	domain, _, _ := f.Domain("b1")
	got, refusal := Gang(f, accounts(west(16), east(16)), d, Claim{}, []Missing{{Index: 3, Domain: domain}}, nil, noon)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := []Assignment{{Index: 3, Group: 1, Node: "b1", Domain: domain, Payer: budget.Key{Budget: "b", Envelope: "east"}, Relation: rqv1.RelationOwn}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assignment (-want +got):\n%s", diff)
	}
}
