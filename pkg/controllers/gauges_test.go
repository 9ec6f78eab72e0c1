package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// gauged returns what is served of a metric, by the values of its labels in order of the labels' names.
func gauged(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				key += l.GetValue() + " "
			}
			out[key[:len(key)-1]] = m.GetGauge().GetValue()
		}
	}
	return out
}

// TestGaugesSayWhatIsSoNow tells of a domain and a Budget, and of others afterwards: what is gone is not served.
func TestGaugesSayWhatIsSoNow(t *testing.T) {
	metrics.Register()
	gaugeFleet(published.Fleet{Domains: []published.Domain{{Values: []string{"r", "a"}, GPUType: "H100", GPUs: 16, Free: 4,
		Promised: 8, Nodes: 2, OutOfService: 1}}})
	want := map[string]float64{"r/a H100 all": 16, "r/a H100 free": 4, "r/a H100 promised": 8}
	if diff := cmp.Diff(want, gauged(t, "jobtree_fleet_gpus")); diff != "" {
		t.Error(diff)
	}
	gaugeFleet(published.Fleet{Domains: []published.Domain{{Values: []string{"r", "b"}, GPUType: "H100", Nodes: 1}}})
	want = map[string]float64{"r/b H100 all": 1, "r/b H100 out_of_service": 0}
	if diff := cmp.Diff(want, gauged(t, "jobtree_fleet_nodes")); diff != "" {
		t.Error(diff)
	}
	gaugeBudgets([]*rqv1.Budget{{ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: rqv1.BudgetSpec{Envelopes: []rqv1.Envelope{{Name: "e", Concurrency: 32, MaxGPUHours: ptr.To(int64(100))}}},
		Status: rqv1.BudgetStatus{Envelopes: []rqv1.EnvelopeStatus{{Name: "gone"}, {Name: "e", OwnedGPUs: 8, HeadroomGPUs: 24,
			GPUHours: &rqv1.GPUHours{Spent: "12.5", Left: "87.5", Hourly: "8",
				Lost: []rqv1.LostGPUHours{{GPUHours: "1"}, {GPUHours: "0.5"}}}}}}}})
	want = map[string]float64{"b e max": 100, "b e spent": 12.5, "b e left": 87.5, "b e hourly": 8, "b e lost": 1.5}
	if diff := cmp.Diff(want, gauged(t, "jobtree_budget_gpu_hours")); diff != "" {
		t.Error(diff)
	}
	want = map[string]float64{"b e concurrency": 32, "b e owned": 8, "b e headroom": 24, "b e family": 0, "b e lent": 0,
		"b e spare": 0, "b e overdraft": 0, "b e opportunistic": 0}
	if diff := cmp.Diff(want, gauged(t, "jobtree_budget_gpus")); diff != "" {
		t.Error(diff)
	}
	gaugeBudgets(nil)
	if got := gauged(t, "jobtree_budget_gpus"); len(got) != 0 {
		t.Errorf("a Budget that is gone: %v", got)
	}
}

// TestGaugesOfRunsThatWait counts Runs by types of GPU that there are: nobody makes series by inventing types.
func TestGaugesOfRunsThatWait(t *testing.T) {
	metrics.Register()
	fleet := published.Fleet{Domains: []published.Domain{{GPUType: "A100"}, {GPUType: "H100"}}}
	gaugeWaiting(map[book.WaitsFor]int{
		{Reason: plan.InsufficientGPUs, GPUType: "H100", Dated: true}: 3, {Reason: plan.InsufficientGPUs, GPUType: "H100"}: 2,
		{Reason: plan.UnknownGPUType, GPUType: "H1000"}: 1, {Reason: plan.UnknownGPUType, GPUType: "h100"}: 4}, fleet)
	want := map[string]float64{"dated H100 InsufficientGPUs": 3, "undated H100 InsufficientGPUs": 2,
		"undated other UnknownGPUType": 5}
	if diff := cmp.Diff(want, gauged(t, "jobtree_runs_waiting")); diff != "" {
		t.Error(diff)
	}
}

// TestPromisesMoveInDirections counts dates that are replaced, and none that is given first or stays.
func TestPromisesMoveInDirections(t *testing.T) {
	for name, c := range map[string]struct {
		was, is time.Time
		want    string
	}{"the first date": {time.Time{}, noon, ""}, "the same": {noon, noon, ""}, "sooner": {noon, noon.Add(-1), "earlier"},
		"not so soon": {noon, noon.Add(1), "later"}} {
		if got := revised(c.was, c.is); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
