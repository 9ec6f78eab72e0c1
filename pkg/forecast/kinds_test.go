package forecast_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// TestAPromiseHoldsWhatEachKindOfPodsAsksFor: where pods of a Run differ in what they ask for beside GPUs, each of them
// is promised its own on its node.
func TestAPromiseHoldsWhatEachKindOfPodsAsksFor(t *testing.T) {
	cpu := func(n int64) *topology.Amounts { return topology.NewAmounts(map[string]int64{"cpu": n}) }
	s := newScene(64, nil, 2)
	for _, node := range []string{"A0", "A1"} {
		s.Fleet.SetNode(topology.Node{Name: node, Flavor: flavor, GPUs: 8, Beside: cpu(500),
			Labels: map[string]string{"region": "west", "fabric.domain": "A"}})
	}
	s.holds("x", "A0", "A1")
	s.ends(0, 5*time.Minute)
	s.candidates = nil
	kind := func(pod string, amount int64) *plan.Kind {
		return &plan.Kind{Pod: pod, Beside: cpu(amount), Nodes: []string{"A0", "A1"},
			Domains: map[string][]string{"west/A": {"A0", "A1"}}}
	}
	large, small := kind("large", 300), kind("small", 100)
	ask := ask(4)
	ask.Demand.GPUsPerPod, ask.Demand.Beside = 4, large.Beside
	for i := range ask.Missing {
		ask.Missing[i].Kind = small
	}
	ask.Missing[0].Kind, ask.Missing[3].Kind = large, large
	p, refusal := forecast.Earliest(s.State, ask)
	if refusal != nil {
		t.Fatalf("it has no date: %s", refusal.Message)
	}
	want := []resolver.Holding{{Node: "A0", GPUs: 8, Beside: cpu(400)}, {Node: "A1", GPUs: 8, Beside: cpu(400)}}
	if diff := cmp.Diff(want, p.Nodes); diff != "" {
		t.Errorf("it is promised (-want +got):\n%s", diff)
	}
}
