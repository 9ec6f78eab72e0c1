package forecast_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// tenant holds a node's GPUs, paid by an envelope, until it ends; never when ends is 0.
type tenant struct {
	name    string
	node    string
	gpus    int
	payer   string
	since   time.Duration // before now
	ends    time.Duration
	leaving bool
}

// claimant is a Reservation of another Run.
type claimant struct {
	tenant
	younger bool
}

// world is a small world with a known future: it is built as often as it is asked about.
type world struct {
	nodes     map[string]string // domain by node
	envelopes []rqv1.Envelope
	tenants   []tenant
	ahead     []claimant
	notBefore time.Duration
	ask       forecast.Ask
}

// minutes draws an instant after now, at which others are likely to fall too.
func minutes(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.IntRange(1, 8).Draw(t, what)) * 10 * time.Minute
}

func drawWorld(t *rapid.T) *world {
	w := &world{nodes: map[string]string{}, notBefore: 15 * time.Minute}
	if rapid.Bool().Draw(t, "no cuts for long") {
		w.notBefore = 24 * time.Hour
	}
	free := map[string]int{}
	for _, domain := range []string{"A", "B"}[:rapid.IntRange(1, 2).Draw(t, "domains")] {
		for n := range rapid.IntRange(1, 3).Draw(t, "nodes of "+domain) {
			w.nodes[fmt.Sprint(domain, n)], free[fmt.Sprint(domain, n)] = domain, 8
		}
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "envelopes") {
		e := rqv1.Envelope{Name: fmt.Sprint("e", i), Flavor: flavor, Concurrency: int32(8 * rapid.IntRange(1, 5).Draw(t,
			"concurrency"))}
		if rapid.IntRange(0, 2).Draw(t, "opens") == 0 {
			at := metav1.NewTime(noon.Add(minutes(t, "start")))
			e.Start = &at
		}
		if rapid.IntRange(0, 2).Draw(t, "closes") == 0 {
			at := metav1.NewTime(noon.Add(minutes(t, "end") + 80*time.Minute*time.Duration(rapid.IntRange(0, 1).Draw(t,
				"later"))))
			e.End = &at
		}
		if rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
			most := int64(rapid.IntRange(1, 60).Draw(t, "GPU-hours"))
			e.MaxGPUHours = &most
		}
		w.envelopes = append(w.envelopes, e)
	}
	payers := func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "e0", w.envelopes[len(w.envelopes)-1].Name}).Draw(t, "payer")
	}
	for i, node := range sortedKeys(w.nodes) {
		if rapid.IntRange(0, 3).Draw(t, "idle "+node) == 0 {
			continue
		}
		h := tenant{name: fmt.Sprint("tenant", i), node: node, gpus: rapid.SampledFrom([]int{4, 8}).Draw(t, "gpus"),
			payer: payers(t), since: minutes(t, "since")}
		if rapid.IntRange(0, 3).Draw(t, "endless") > 0 {
			h.ends = minutes(t, "ends")
			h.leaving = rapid.IntRange(0, 3).Draw(t, "leaving") == 0
		}
		free[node] -= h.gpus
		w.tenants = append(w.tenants, h)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "ahead") {
		c := claimant{younger: rapid.Bool().Draw(t, "younger")}
		c.tenant = tenant{name: fmt.Sprint("ahead", i), node: rapid.SampledFrom(sortedKeys(w.nodes)).Draw(t, "slice"),
			gpus:  4,
			payer: payers(t), ends: minutes(t, "starts")}
		w.ahead = append(w.ahead, c)
	}
	size := rapid.SampledFrom([]int{4, 8}).Draw(t, "pod")
	groups, pods := rapid.IntRange(1, 2).Draw(t, "groups"), rapid.IntRange(1, 2).Draw(t, "pods")
	w.ask = askFor(size, groups, pods)
	if rapid.Bool().Draw(t, "bounded") {
		w.ask.Claim.MaxDuration = time.Duration(rapid.IntRange(1, 5).Draw(t, "hours")) * 30 * time.Minute
	}
	return w
}

func sortedKeys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// askFor asks for groups of pods of a size.
func askFor(size, groups, pods int) forecast.Ask {
	a := ask(groups * pods)
	a.Demand.GPUsPerPod, a.Demand.Groups, a.Demand.PodsPerGroup = size, groups, pods
	return a
}

func (h *tenant) charge(at time.Time) budget.Charge {
	c := budget.Charge{Payer: budget.Key{Budget: "b", Envelope: h.payer}, Owner: "org:a", Run: h.name,
		Relation: rqv1.RelationOwn, Role: rqv1.RoleActive, GPUs: h.gpus, Rate: budget.FullRate, Start: at, Flavor: flavor}
	if h.ends > 0 && at.Before(noon) {
		c.Until = noon.Add(h.ends)
	}
	return c
}

// now builds the world as it is, with what is known to come.
func (w *world) now() *forecast.State {
	s := &forecast.State{Fleet: topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain"),
		Accounts: budget.NewAccounts(budget.Rates{}), Now: noon, NotBefore: noon.Add(w.notBefore), WindowDelay: 0,
		Candidates: func(map[string]bool, time.Time) []resolver.Candidate { return nil }}
	for node, domain := range w.nodes {
		s.Fleet.SetNode(topology.Node{Name: node, Flavor: flavor, GPUs: 8,
			Labels: map[string]string{"region": "west", "fabric.domain": domain}})
	}
	for node, has := range map[string]string{"plain": "", "broken": flavor} { // which have no GPUs
		s.Fleet.SetNode(topology.Node{Name: node, Flavor: has,
			Labels: map[string]string{"region": "west", "fabric.domain": "A"}})
	}
	s.Accounts.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: rqv1.BudgetSpec{Owner: "org:a", Envelopes: w.envelopes}})
	for i := range w.tenants {
		h := &w.tenants[i]
		s.Fleet.Take(h.node, h.gpus)
		r := forecast.Release{At: noon.Add(h.ends), Leaving: h.leaving,
			Holds: []resolver.Holding{{Node: h.node, GPUs: h.gpus}}}
		if h.payer != "" {
			s.Accounts.Open(h.name, h.charge(noon.Add(-h.since)))
			r.Leases = []string{h.name}
		}
		if h.ends > 0 {
			s.Releases = append(s.Releases, r)
		}
	}
	for i := range w.ahead {
		c := &w.ahead[i]
		a := forecast.Ahead{Run: rqv1.NamespacedName{Namespace: "ns", Name: c.name}, Owner: "org:a", At: noon.Add(c.ends),
			Shielded: noon.AddDate(1, 0, 0), Younger: c.younger, Holds: []resolver.Holding{{Node: c.node, GPUs: c.gpus}}}
		if c.payer != "" {
			a.Charges = map[string]budget.Charge{c.name: c.charge(a.At)}
		}
		s.Ahead = append(s.Ahead, a)
	}
	return s
}

// instants are when something is known to happen, in order.
func (w *world) instants() []time.Time {
	var out []time.Time
	for i := range w.tenants {
		if ends := w.tenants[i].ends; ends > 0 {
			out = append(out, noon.Add(ends))
		}
	}
	for i := range w.ahead {
		out = append(out, noon.Add(w.ahead[i].ends))
	}
	for i := range w.envelopes {
		if at := w.envelopes[i].Start; at != nil {
			out = append(out, at.Time)
		}
		if at := w.envelopes[i].End; at != nil {
			out = append(out, at.Time)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.Compact(out)
}

// at builds the world as it is going to be for somebody who starts at an instant: Reservations ahead have taken what
// is theirs by then, younger ones only before, and what ends then is free.
func (w *world) at(at time.Time) *forecast.State {
	s := w.now()
	for i := range s.Ahead {
		a := &s.Ahead[i]
		if a.At.After(at) || a.At.Equal(at) && a.Younger {
			continue
		}
		for name, c := range a.Charges {
			s.Accounts.Open(name, c)
		}
		for _, h := range a.Holds {
			s.Fleet.Take(h.Node, h.GPUs)
		}
	}
	for _, r := range s.Releases {
		if r.At.After(at) {
			continue
		}
		for _, name := range r.Leases {
			s.Accounts.Close(name, r.At)
		}
		for _, h := range r.Holds {
			s.Fleet.Give(h.Node, h.GPUs)
		}
	}
	return s
}

// fits says whether the Run starts at an instant without anybody being cut.
func (w *world) fits(at time.Time) bool {
	s := w.at(at)
	_, refusal := plan.Gang(s.Fleet, s.Accounts, w.ask.Demand, w.ask.Claim, w.ask.Missing, nil, at)
	return refusal == nil
}

// exact says that no GPU-hours can run out again that an end has given back: such a moment may be missed, and the Run
// starts then although it was promised to start later.
func (w *world) exact() bool {
	limited := slices.ContainsFunc(w.envelopes, func(e rqv1.Envelope) bool { return e.MaxGPUHours != nil })
	return !limited || !slices.ContainsFunc(w.tenants, func(h tenant) bool { return h.payer != "" && h.ends > 0 })
}

// earliest is the first instant at which the Run starts without cuts, found by trying them all; false for never.
func (w *world) earliest() (time.Time, bool) {
	for _, at := range w.instants() {
		if w.fits(at) {
			return at, true
		}
	}
	return time.Time{}, false
}
