package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

const (
	flavor = "H100-80GB"
	teams  = 8
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet is a cluster of so many nodes of 8 GPUs, and of teams that may have a quarter of them each.
func fleet(t testing.TB, nodes int) *sim.Cluster {
	t.Helper()
	args, err := config.Parse([]byte("{reservationLead: 5m}"))
	if err != nil {
		t.Fatal(err)
	}
	c := sim.New(sim.Options{Args: args, Rules: lifecycle.RulesOf(args), Begin: noon, Reserves: true,
		Witness: sim.Witness{Violated: func(format string, args ...any) { t.Fatalf(format, args...) }}})
	for i := range nodes {
		c.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%03d", i), Labels: map[string]string{
				"region": "r", "cluster": "c", "fabric.domain": fmt.Sprint("d", i/16), "gpu.flavor": flavor,
			}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
		})
	}
	for i := range teams {
		name := fmt.Sprint("team", i)
		c.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: rqv1.BudgetSpec{
			Owner:     rqv1.Owner("org:" + name),
			Envelopes: []rqv1.Envelope{{Name: "e", Flavor: flavor, Concurrency: int32(nodes * 8 / 4)}},
		}})
	}
	return c
}

// history is so many Runs of several kinds, one every so often, none larger than a team may have.
func history(runs int, every time.Duration) []sim.Job {
	var jobs []sim.Job
	for i := range runs {
		pods, size := 1+i*7%4, int32(8)
		total := int32(pods) * size
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("run%05d", i)}, Spec: rqv1.RunSpec{
			Owner:     rqv1.Owner(fmt.Sprint("org:team", i*5%teams)),
			Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: total, GPUsPerPod: &size},
			Runtime:   &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 10 * time.Minute}},
		}}
		switch i % 5 {
		case 1:
			run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &total}
			run.Spec.SparesPerGroup = &size
		case 2:
			run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: size, MaxTotalGPUs: total, StepGPUs: size}
		case 3:
			run.Spec.Opportunistic = i%10 == 3
		}
		jobs = append(jobs, sim.Job{At: noon.Add(time.Duration(i) * every), Run: run,
			Works: time.Duration(10+i*13%50) * time.Minute})
	}
	return jobs
}

// world is what an audit reads.
func world(c *sim.Cluster) *audit.World {
	nodes := slices.Collect(maps.Values(c.Nodes))
	for _, machine := range sim.Machines() {
		nodes = append(nodes, &machine)
	}
	return &audit.World{At: c.Now, Nodes: nodes, Pods: slices.Collect(maps.Values(c.Pods)),
		Runs: slices.Collect(maps.Values(c.Runs)), Reservations: slices.Collect(maps.Values(c.Reservations)),
		Leases: slices.Collect(maps.Values(c.Leases))}
}

// audited asserts what always holds, as `kubectl runs audit` does.
func audited(t testing.TB, c *sim.Cluster) {
	t.Helper()
	look := audit.RulesOf(c.Args).Look(world(c))
	for _, f := range audit.Standing(look, look) {
		if f.Level == audit.Violation {
			t.Fatalf("%s at %s: %s", f.Invariant, c.Now, f.Message)
		}
	}
}

// TestAThousandRuns goes through a history of a day: nodes are lost and come back, writes fail or are late, and the
// process dies again and again. Every Run completes, and what always holds does.
func TestAThousandRuns(t *testing.T) {
	c := fleet(t, 64)
	jobs := history(1000, 88*time.Second)
	end := noon.Add(48 * time.Hour)
	var events []sim.Event
	for i := range 24 {
		at, node := noon.Add(time.Duration(i)*time.Hour), fmt.Sprintf("n%03d", i*11%64)
		events = append(events,
			sim.Event{At: at.Add(7 * time.Minute), Do: func(c *sim.Cluster) { c.Lose(node) }},
			sim.Event{At: at.Add(20 * time.Minute), Do: func(c *sim.Cluster) { c.Forgive(node) }},
			sim.Event{At: at.Add(30 * time.Minute), Do: func(c *sim.Cluster) { audited(t, c) }})
	}
	for i := range 60 {
		c.Faults.Add(sim.Fault{Of: sim.All, After: 200 * i, Do: sim.Crash},
			sim.Fault{Of: sim.All, After: 77 + 150*i, Do: sim.Refused}, sim.Fault{Of: sim.All, After: 33 + 150*i, Do: sim.Late})
	}
	if err := c.Play(jobs, events, end); err != nil {
		t.Fatal(err)
	}
	audited(t, c)
	phases := map[rqv1.RunPhase]int{}
	for _, run := range c.Runs {
		phases[run.Status.Phase]++
	}
	if phases[rqv1.RunCompleted] != len(jobs) {
		t.Errorf("%v", phases)
	}
	t.Logf("%d writes until %s, %d Leases, %d Reservations", c.Writes, c.Now, len(c.Leases), len(c.Reservations))
}

// BenchmarkHistory goes through a history of 1,000 Runs.
func BenchmarkHistory(b *testing.B) {
	for b.Loop() {
		c := fleet(b, 64)
		if err := c.Play(history(1000, 88*time.Second), nil, noon.Add(48*time.Hour)); err != nil {
			b.Fatal(err)
		}
	}
}
