package forecast_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// seen is what a look at a State shows.
type seen struct {
	Domains []topology.Domain
	Rooms   []topology.DomainRoom
	Held    map[string]int
	Charges map[string]budget.Charge
	Used    map[budget.Key]int
	Spent   []map[budget.Key]budget.Spend
	Offers  []budget.Offer
}

func (w *world) look(s *forecast.State) seen {
	out := seen{Domains: s.Fleet.Domains(), Rooms: s.Fleet.RoomOf(flavor), Held: map[string]int{},
		Charges: map[string]budget.Charge{}, Used: s.Accounts.Usage()}
	for node := range w.nodes {
		out.Held[node] = s.Fleet.Held(node)
	}
	for _, h := range w.tenants {
		if c, ok := s.Accounts.Charge(h.name); ok {
			out.Charges[h.name] = c
		}
	}
	for i := range w.ahead {
		if c, ok := s.Accounts.Charge(w.ahead[i].name); ok {
			out.Charges[w.ahead[i].name] = c
		}
	}
	for _, later := range []time.Duration{0, time.Hour, 48 * time.Hour} {
		out.Spent = append(out.Spent, s.Accounts.Spent(noon.Add(later)))
		cover := s.Accounts.Cover(budget.Ask{Owner: "org:a", Flavor: flavor, GPUsPerPod: 4}, noon.Add(later))
		out.Offers = append(out.Offers, cover.Offers...)
	}
	return out
}

// The date that a Run is promised is the first at which it fits, found by trying every instant on a world that is
// built anew; a Run that gets none fits at none. The fleet and the accounts are as they were afterwards.
func TestThePromiseIsTheFirstInstantThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if w.fits(noon) {
			return // it would start at once
		}
		s := w.now()
		before := w.look(s)
		p, refusal := forecast.Earliest(*s, w.ask)
		if diff := cmp.Diff(before, w.look(s), cmpopts.IgnoreUnexported(budget.Offer{})); diff != "" {
			t.Fatalf("the forecast left changes behind (-before +after):\n%s", diff)
		}
		want, ever := w.earliest()
		if !w.exact() && p != nil && w.fits(p.At) {
			want, ever = p.At, true
		}
		switch {
		case (p == nil) == (refusal == nil):
			t.Fatalf("a promise %v and a refusal %v", p, refusal)
		case p == nil && ever && w.exact():
			t.Fatalf("no date (%s), although it fits at +%s", refusal.Message, want.Sub(noon))
		case p != nil && !ever:
			t.Fatalf("promised +%s, at which it does not fit", p.At.Sub(noon))
		case p != nil && ever && !p.At.Equal(want):
			t.Fatalf("promised +%s (%s, cuts %v), but it fits at +%s", p.At.Sub(noon), p.Confidence, p.Cuts, want.Sub(noon))
		}
	})
}

// cuttable returns the Runs of tenants that are there at an instant, and not on their way out, in some domains.
func (w *world) cuttable(domains map[string]bool, at time.Time) []resolver.Candidate {
	var out []resolver.Candidate
	for i := range w.tenants {
		h := &w.tenants[i]
		key, _, _ := w.now().Fleet.Domain(h.node)
		if domains[key] && !h.leaving && (h.ends == 0 || noon.Add(h.ends).After(at)) {
			out = append(out, resolver.Candidate{Run: rqv1.NamespacedName{Namespace: "ns", Name: h.name},
				Owner: rqv1.Owner("org:" + h.name), Ticket: true, Rest: []resolver.Holding{{Node: h.node, GPUs: h.gpus}}})
		}
	}
	return out
}

// onlyLeaving is the world in which nothing ends by itself, and no window opens, after an instant.
func (w *world) onlyLeaving(after time.Duration) *world {
	out := *w
	out.tenants = slices.Clone(w.tenants)
	for i := range out.tenants {
		if h := &out.tenants[i]; !h.leaving && h.ends > after {
			h.ends = 0
		}
	}
	out.envelopes = slices.DeleteFunc(slices.Clone(w.envelopes), func(e rqv1.Envelope) bool {
		return e.Start != nil && e.Start.After(noon.Add(after))
	})
	return &out
}

// Where others may be cut, a Run that is promised a start by cuts would not start without them until then, nor once
// those are gone who are leaving anyway; the cuts that are published suffice, and it is going to lie where it was
// said.
func TestAPromiseOfCutsIsNeededAndEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for i := range w.envelopes {
			w.envelopes[i].MaxGPUHours = nil
		}
		if w.notBefore = 15 * time.Minute; w.fits(noon) {
			return // it would start at once
		}
		s := w.now()
		s.Candidates = w.cuttable
		before := w.look(s)
		p, _ := forecast.Earliest(*s, w.ask)
		if diff := cmp.Diff(before, w.look(s), cmpopts.IgnoreUnexported(budget.Offer{})); diff != "" {
			t.Fatalf("the forecast left changes behind (-before +after):\n%s", diff)
		}
		want, ever := w.earliest()
		switch {
		case p == nil && ever:
			t.Fatalf("no date, although it fits at +%s without cuts", want.Sub(noon))
		case p == nil:
			return
		case !p.Cuts && (!ever || !want.Equal(p.At)):
			t.Fatalf("promised +%s without cuts, but it fits at +%s (%v)", p.At.Sub(noon), want.Sub(noon), ever)
		case p.Cuts && p.At.Before(s.NotBefore):
			t.Fatalf("cuts at +%s, before anybody may be cut", p.At.Sub(noon))
		case p.Cuts && ever && !want.After(p.At):
			t.Fatalf("cuts at +%s, although it fits at +%s without", p.At.Sub(noon), want.Sub(noon))
		}
		then := w.at(p.At)
		if p.Cuts {
			for _, at := range w.instants() {
				if leaving := w.onlyLeaving(p.At.Sub(noon)); at.After(p.At) && leaving.fits(at) && leaves(leaving, p.At) {
					t.Fatalf("cuts at +%s, although it fits at +%s when those are gone who leave", p.At.Sub(noon), at.Sub(noon))
				}
			}
			for _, h := range resolver.AtRisk(p.Conflicts, w.cuttable(p.Slice.Domains, p.At)) {
				then.Fleet.Give(h.Node, h.GPUs)
			}
		}
		_, refusal := plan.Prepare(then.Accounts, w.ask.Demand, w.ask.Claim, w.ask.Missing, nil, p.At).
			Within(p.Slice.Domains).Place(then.Fleet)
		if refusal != nil {
			t.Fatalf("promised +%s in %s, at which it does not fit: %s", p.At.Sub(noon), p.Slice.Scope, refusal.Message)
		}
		gpus, paid := 0, 0
		for _, h := range p.Nodes {
			gpus += h.GPUs
			if key, _, _ := then.Fleet.Domain(h.Node); !p.Slice.Domains[key] {
				t.Fatalf("node %s is not in %v", h.Node, slices.Sorted(maps.Keys(p.Slice.Domains)))
			}
		}
		for _, e := range p.Payers {
			paid += int(e.GPUs)
		}
		if all := w.ask.Demand.GPUs(); gpus != all || paid != all {
			t.Fatalf("%d GPUs are promised and %d paid for, of %d", gpus, paid, all)
		}
	})
}

// leaves says whether somebody is still on the way out after an instant.
func leaves(w *world, at time.Time) bool {
	return slices.ContainsFunc(w.tenants, func(h tenant) bool { return h.leaving && noon.Add(h.ends).After(at) })
}
