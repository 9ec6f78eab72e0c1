package budget

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// history is a random course of events, of which everything is remembered: what accounts say is compared with it.
type history struct {
	*Accounts
	now     time.Time
	budgets map[string]*rqv1.Budget
	leases  map[string]*past
	stored  map[string]string // records as JSON, by Budget
	n       int
	ahead   time.Duration   // by how much the clock is fast
	going   map[string]bool // namespaces that are being deleted
}

// past is a Lease that was opened, and what became of it.
type past struct {
	Charge
	ended   time.Time // zero while it is open
	folded  bool      // it is in the accounts' records
	late    bool      // it came there by itself
	early   bool      // it is to come there with its namespace
	gone    bool      // its object is gone
	settled bool      // it is in a stored record
}

func newHistory() *history {
	h := &history{Accounts: NewAccounts(rates), now: noon, budgets: map[string]*rqv1.Budget{}, leases: map[string]*past{},
		stored: map[string]string{},
		going:  map[string]bool{}}
	h.set(capped(of("a", "p:o", rqv1.Envelope{Name: "e", Concurrency: 800, MaxGPUHours: ptr(int64(1))},
		rqv1.Envelope{Name: "f", Concurrency: 400}),
		rqv1.AggregateCap{Name: "all", Envelopes: []string{"e", "f"}, MaxConcurrency: ptr(int32(900))}))
	h.set(of("b", "p", rqv1.Envelope{Name: "e", Concurrency: 600, Lending: lends("x")}))
	h.Complete()
	return h
}

func (h *history) set(b *rqv1.Budget) {
	h.budgets[b.Name] = b
	h.SetBudget(b)
}

// pick draws the name of a Lease of some kind; empty when there is none, and the event does not happen.
func (h *history) pick(t *rapid.T, which func(*past) bool) (string, *past) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(h.leases)) {
		if which(h.leases[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	name := rapid.SampledFrom(names).Draw(t, "lease")
	return name, h.leases[name]
}

func isOpen(p *past) bool { return p.ended.IsZero() }

func (h *history) open(t *rapid.T) {
	h.n++
	c := Charge{
		Payer: rapid.SampledFrom([]Key{{"a", "e"}, {"a", "f"}, {"b", "e"}, {"c", "e"}}).Draw(t, "payer"),
		Owner: rapid.SampledFrom([]rqv1.Owner{"p:o", "p:s", "x"}).Draw(t, "owner"), Run: "r",
		Relation: rapid.SampledFrom([]rqv1.Relation{rqv1.RelationOwn, rqv1.RelationSibling, rqv1.RelationAncestor,
			rqv1.RelationSponsor}).Draw(t, "relation"),
		Role: rapid.SampledFrom([]rqv1.LeaseRole{rqv1.RoleActive, rqv1.RoleActive, rqv1.RoleSpare,
			rqv1.RoleBorrowed}).Draw(t, "role"),
		GPUs: rapid.IntRange(1, 400).Draw(t, "GPUs"), Rate: Rate(rapid.IntRange(0, 1000).Draw(t, "rate")),
		Start: h.now.Add(-time.Duration(rapid.IntRange(0, 2500).Draw(t, "ms ago")) * time.Millisecond),
	}
	if rapid.Bool().Draw(t, "ends") {
		c.Until = c.Start.Add(time.Duration(rapid.IntRange(1, 60_000).Draw(t, "ms to run")) * time.Millisecond)
	}
	name := fmt.Sprintf("n%d/l%d", h.n%2, h.n)
	h.leases[name] = &past{Charge: c}
	h.Open(name, c)
}

func (h *history) void(t *rapid.T) {
	name, _ := h.pick(t, isOpen)
	if name == "" {
		return
	}
	delete(h.leases, name)
	h.Void(name)
}

func (h *history) close(t *rapid.T) {
	name, p := h.pick(t, isOpen)
	if name == "" {
		return
	}
	p.ended = h.now
	if p.Start.After(h.now) {
		p.ended = p.Start // the clock has been set back: the API admits no end before the start
	}
	if rapid.Bool().Draw(t, "loses") {
		p.Loss = Loss{rapid.SampledFrom(causes[:]).Draw(t, "cause"),
			Spend(rapid.IntRange(1, 5000).Draw(t, "lost")) * GPUSecond}
		h.Open(name, p.Charge)
	}
	h.Close(name, p.ended)
	if p.early = h.goes(name); !h.IsPast(name, p.Payer) {
		p.folded, p.late = true, true
	}
	if h.settlingOf(p.Payer.Budget).stale {
		h.store(t, p.Payer.Budget) // in production within a minute, which must not end in a crash
	}
}

// again has a closed Lease seen once more.
func (h *history) again(t *rapid.T) {
	if name, p := h.pick(t, func(p *past) bool { return !isOpen(p) && !p.gone }); p != nil {
		h.Past(name, p.Charge, p.ended)
	}
}

// jump sets the clock far ahead, or back to where it was.
func (h *history) jump(t *rapid.T) {
	if h.ahead > 0 {
		h.now, h.ahead = h.now.Add(-h.ahead), 0
		return
	}
	h.ahead = time.Duration(rapid.IntRange(1, 3000).Draw(t, "seconds ahead")) * time.Second
	h.now = h.now.Add(h.ahead)
}

func (h *history) pass(t *rapid.T) {
	h.now = h.now.Add(time.Duration(rapid.IntRange(1, 30_000).Draw(t, "ms")) * time.Millisecond)
}

// edit changes a Budget, removes it or an envelope of it, or brings it back.
func (h *history) edit(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "budget")
	if h.budgets[name] != nil && rapid.IntRange(0, 5).Draw(t, "delete") == 0 {
		delete(h.budgets, name)
		h.DeleteBudget(name)
		return
	}
	b := of(name, rapid.SampledFrom([]rqv1.Owner{"p:o", "p"}).Draw(t, "owner"))
	for _, e := range []string{"e", "f"} {
		if rapid.IntRange(0, 3).Draw(t, "has "+e) > 0 {
			b.Spec.Envelopes = append(b.Spec.Envelopes, h.envelope(t, Key{name, e}))
		}
	}
	if len(b.Spec.Envelopes) > 0 && rapid.Bool().Draw(t, "capped") {
		capped(b, rqv1.AggregateCap{Name: "all", Envelopes: []string{"e", "f"},
			MaxConcurrency: maybe[int32](t, 1, 1200, "cap"), MaxGPUHours: maybe[int64](t, 1, 2, "hours of cap")},
			rqv1.AggregateCap{Name: "one", Envelopes: []string{"f"}, MaxConcurrency: maybe[int32](t, 1, 400, "cap of f")})
	}
	h.set(b)
}

func (h *history) envelope(t *rapid.T, k Key) rqv1.Envelope {
	e := rqv1.Envelope{Name: k.Envelope, Flavor: "H100", Concurrency: rapid.Int32Range(1, 1200).Draw(t, "concurrency"),
		MaxGPUHours: maybe[int64](t, 1, 2, "hours")}
	if rapid.IntRange(0, 4).Draw(t, "sharing") == 0 {
		e.Sharing = rqv1.SharingNone
	}
	if rapid.Bool().Draw(t, "lends") {
		e.Lending = &rqv1.Lending{Allow: rapid.IntRange(0, 4).Draw(t, "allow") > 0, To: []rqv1.ACLEntry{"*"},
			MaxConcurrency: maybe[int32](t, 1, 400, "lent"),
			MaxGPUHours:    maybe[int64](t, 1, 1, "hours lent")}
	}
	// A window may begin again where it once began, or after all that is settled.
	latest := noon.Unix() - 60
	for _, p := range h.leases {
		if p.Payer == k && p.folded {
			latest = max(latest, p.ended.Unix())
		}
	}
	starts := []int64{0, max(latest, h.now.Unix()-5), max(latest, h.now.Unix()+3)}
	for _, bucket := range h.Record(k.Budget).Envelopes[k.Envelope] {
		starts = append(starts, bucket.Start)
	}
	if start := rapid.SampledFrom(starts).Draw(t, "start"); start > 0 {
		e.Start = after(time.Unix(start, 0).Sub(noon))
	}
	if rapid.IntRange(0, 3).Draw(t, "window ends") == 0 {
		e.End = after(h.now.Sub(noon) + time.Duration(rapid.IntRange(-5, 20).Draw(t, "end"))*time.Second)
	}
	return e
}

func (h *history) settle(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "budget")
	through := h.now.Add(-time.Duration(rapid.IntRange(1, 20).Draw(t, "retention")) * time.Second)
	folded, _ := h.Settle(name, through)
	var want []string
	for lease, p := range h.leases {
		if p.Payer.Budget == name && (p.late || !p.folded && !isOpen(p) && (p.early || p.ended.Unix() <= through.Unix())) {
			p.folded, p.late = true, false
			want = append(want, lease)
		}
	}
	slices.Sort(want)
	slices.Sort(folded)
	if diff := gocmp.Diff(want, folded); diff != "" {
		t.Fatalf("folded (-want +got):\n%s", diff)
	}
	if rapid.Bool().Draw(t, "stored") {
		h.store(t, name)
	}
}

func (h *history) store(t *rapid.T, budget string) {
	text, err := json.Marshal(h.Record(budget))
	if err != nil {
		t.Fatal(err)
	}
	h.stored[budget] = string(text)
	for _, p := range h.leases {
		if p.Payer.Budget == budget && p.folded {
			p.settled = true
		}
	}
}

// remove deletes the object of a Lease that is in a stored record.
func (h *history) remove(t *rapid.T) {
	name, p := h.pick(t, func(p *past) bool { return p.settled && !p.gone && !p.late })
	if p == nil {
		return
	}
	p.gone = true
	h.Dropped(p.Payer.Budget, name)
}

// forget has the object of a closed Lease vanish before it is settled.
func (h *history) forget(t *rapid.T) {
	name, p := h.pick(t, func(p *past) bool { return !isOpen(p) && !p.folded })
	if name == "" {
		return
	}
	p.folded, p.gone = true, true
	changed := h.Forget(name)
	if diff := gocmp.Diff([]string{p.Payer.Budget}, changed); diff != "" {
		t.Fatalf("changed (-want +got):\n%s", diff)
	}
	h.store(t, p.Payer.Budget)
}

// leave has a namespace told to go: its Leases are settled early, while their objects may vanish at any time.
func (h *history) leave(t *rapid.T) {
	namespace := rapid.SampledFrom([]string{"n0", "n1"}).Draw(t, "namespace")
	if rapid.Bool().Draw(t, "gone") {
		h.Left(namespace)
		delete(h.going, namespace)
		return
	}
	h.Leave(namespace)
	h.going[namespace] = true
	for name, p := range h.leases {
		p.early = p.early || !isOpen(p) && h.goes(name)
	}
}

func (h *history) goes(lease string) bool { return h.going[lease[:2]] }

// restart builds the accounts anew from the objects that there are, in any order.
func (h *history) restart(t *rapid.T) {
	h.Accounts = NewAccounts(rates)
	var events []func()
	for _, name := range slices.Sorted(maps.Keys(h.budgets)) {
		events = append(events, func() { h.SetBudget(h.budgets[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(h.stored)) {
		var r Record
		if err := json.Unmarshal([]byte(h.stored[name]), &r); err != nil {
			t.Fatal(err)
		}
		events = append(events, func() { h.SetRecord(r) })
	}
	for _, namespace := range slices.Sorted(maps.Keys(h.going)) {
		events = append(events, func() { h.Leave(namespace) })
	}
	for _, name := range slices.Sorted(maps.Keys(h.leases)) {
		switch p := h.leases[name]; {
		case p.gone:
		case isOpen(p):
			events = append(events, func() { h.Open(name, p.Charge) })
		default:
			p.folded, p.late, p.early = p.settled, false, h.goes(name)
			events = append(events, func() { h.Past(name, p.Charge, p.ended) })
		}
	}
	for _, event := range rapid.Permutation(events).Draw(t, "order") {
		event()
	}
	h.Complete()
}

// oldestFirst returns the open Leases that use concurrency, the oldest first.
func (h *history) oldestFirst() []string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(h.leases)), func(n string) bool {
		return !isOpen(h.leases[n]) ||
			h.leases[n].Role == rqv1.RoleBorrowed
	})
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(h.leases[x].Start.Compare(h.leases[y].Start), strings.Compare(x, y))
	})
	return names
}
