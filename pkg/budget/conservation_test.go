package budget

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestConservation lets random histories pass and compares the accounts with all Leases that there ever were, second by
// second: no GPU-second is lost or paid twice, whatever is edited, settled, deleted or restarted (I3, I8).
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		t.Repeat(map[string]func(*rapid.T){
			"open": h.open, "open another": h.open, "void": h.void, "close": h.close, "pass": h.pass, "edit": h.edit,
			"settle": h.settle, "remove": h.remove, "forget": h.forget, "leave": h.leave, "restart": h.restart, "jump": h.jump,
			"again": h.again,
			"": func(t *rapid.T) {
				h.checkSpent(t)
				h.checkOverdraft(t)
			},
		})
	})
}

// replay returns what Leases of a payer have spent and what is promised, second by second.
func (h *history) replay(match func(Charge) bool, window int64) (spent, promised Spend) {
	for _, p := range h.leases {
		if !match(p.Charge) {
			continue
		}
		end := h.now.Unix()
		if !isOpen(p) {
			end = p.ended.Unix()
		}
		begin := max(p.Start.Unix(), window)
		if isOpen(p) {
			end = max(end, window)
		}
		spent += Spend(max(0, end-begin) * int64(p.GPUs*int(p.Rate)))
		if isOpen(p) {
			until := h.now.Unix() + 3600
			if !p.Until.IsZero() {
				until = p.Until.Unix()
			}
			promised += Spend(max(0, until-h.now.Unix()) * int64(p.GPUs) * int64(p.Rate))
		}
	}
	return spent, promised
}

func windowStart(e *rqv1.Envelope) int64 {
	if e.Start == nil {
		return 0
	}
	return e.Start.Unix()
}

func (h *history) checkSpent(t *rapid.T) {
	for _, b := range h.budgets {
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			k := Key{b.Name, e.Name}
			for tie, matches := range map[holder]func(Charge) bool{
				holderOwner:    func(c Charge) bool { return c.Payer == k && c.Relation == rqv1.RelationOwn },
				holderFamily:   func(c Charge) bool { return c.Payer == k && holderOf(c.Relation) == holderFamily },
				holderBorrower: func(c Charge) bool { return c.Payer == k && c.Relation == rqv1.RelationSponsor },
			} {
				spent, promised := h.replay(matches, windowStart(e))
				got := h.account(k).spent(h.now)
				if got := got.of(tie); got != spent {
					t.Fatalf("spent of %s by %d: %d, want %d", k, tie, got, spent)
				}
				if got := h.account(k).promised(h.now, tie); got != promised {
					t.Fatalf("promised of %s by %d: %d, want %d", k, tie, got, promised)
				}
			}
		}
	}
	h.checkLost(t)
	used := map[Key]int{}
	for _, name := range h.oldestFirst() {
		used[h.leases[name].Payer] += h.leases[name].GPUs
	}
	if diff := cmp.Diff(used, h.Usage()); diff != "" {
		t.Fatalf("usage (-want +got):\n%s", diff)
	}
}

// checkLost compares what was lost by each cause in each envelope's window with all that ever was.
func (h *history) checkLost(t *rapid.T) {
	for _, b := range h.budgets {
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			var want losses
			for _, p := range h.leases {
				if p.Payer == (Key{b.Name, e.Name}) && !isOpen(p) && p.ended.Unix() > windowStart(e) {
					want[causeOf(p.Loss.Cause)] += p.Loss.Work
				}
			}
			var told []rqv1.LostGPUHours
			for i, cause := range causes {
				if want[i] != 0 {
					told = append(told, rqv1.LostGPUHours{Cause: cause, GPUHours: want[i].String()})
				}
			}
			if diff := cmp.Diff(told, h.account(Key{b.Name, e.Name}).lostByCause()); diff != "" {
				t.Fatalf("lost of %s/%s (-want +got):\n%s", b.Name, e.Name, diff)
			}
		}
	}
}

// room is what a limit still lets in, and whom it bounds.
type room struct {
	left   int
	bounds func(Charge) bool
}

// rooms returns every limit on GPUs that there is now, straight from the Budgets.
func (h *history) rooms() (out []*room) {
	gpus := func(most *int32, maxHours *int64, bounds func(Charge) bool, window func(Key) int64) {
		r := &room{1 << 30, bounds}
		if most != nil {
			r.left = int(*most)
		}
		var spent Spend
		for _, k := range []Key{{"a", "e"}, {"a", "f"}, {"b", "e"}, {"b", "f"}} {
			part, _ := h.replay(func(c Charge) bool { return c.Payer == k && bounds(c) }, window(k))
			spent += part
		}
		if maxHours != nil && spent >= Spend(*maxHours)*GPUHour {
			r.left = 0
		}
		out = append(out, r)
	}
	window := func(k Key) int64 {
		if e, ok := h.find(k); ok {
			return windowStart(e.Envelope)
		}
		return h.account(k).window // the last that is known of an envelope that is gone
	}
	for _, b := range h.budgets {
		for i := range b.Spec.Envelopes {
			e, k := &b.Spec.Envelopes[i], Key{b.Name, b.Spec.Envelopes[i].Name}
			gpus(&e.Concurrency, e.MaxGPUHours, func(c Charge) bool { return c.Payer == k }, window)
			if l := e.Lending; l != nil {
				gpus(l.MaxConcurrency, l.MaxGPUHours,
					func(c Charge) bool { return c.Payer == k && c.Relation == rqv1.RelationSponsor }, window)
			}
		}
		for i := range b.Spec.AggregateCaps {
			agg := &b.Spec.AggregateCaps[i]
			gpus(agg.MaxConcurrency, agg.MaxGPUHours, func(c Charge) bool {
				return c.Payer.Budget == b.Name && slices.Contains(agg.Envelopes, c.Payer.Envelope)
			}, window)
		}
	}
	return out
}

// serves reports whether an envelope is there, open, and may pay for an owner: the owners are p and p:o, who have
// Budgets, p:s under p, and x.
func (h *history) serves(c Charge) bool {
	e, ok := h.find(c.Payer)
	if !ok || e.Start != nil && h.now.Before(e.Start.Time) || e.End != nil && !h.now.Before(e.End.Time) {
		return false
	}
	if e.owner == c.Owner || e.Lending != nil && e.Lending.Allow {
		return true
	}
	parent := slices.ContainsFunc(slices.Collect(maps.Values(h.budgets)),
		func(b *rqv1.Budget) bool { return b.Spec.Owner == "p" })
	return parent && c.Owner != "x" && e.Sharing != rqv1.SharingNone
}

func (h *history) checkOverdraft(t *rapid.T) {
	before := map[string]int{}
	for name := range h.leases {
		before[name] = h.OverdraftOf(name)
	}
	old := maps.Clone(h.over)
	changed := h.Refresh(h.now)
	rooms := h.rooms()
	var wantChanged []string
	total := map[Key]int{}
	want := map[string]int{}
	for _, name := range h.oldestFirst() {
		c := h.leases[name].Charge
		allowed := c.GPUs
		for _, r := range rooms {
			if r.bounds(c) {
				allowed = max(0, min(allowed, r.left))
			}
		}
		if !h.serves(c) {
			allowed = 0
		}
		for _, r := range rooms {
			if r.bounds(c) {
				if r.left -= allowed; r.left < 0 && allowed > 0 {
					t.Fatalf("more is within a limit than it allows")
				}
			}
		}
		want[name] = c.GPUs - allowed
		total[c.Payer] += c.GPUs - allowed
		if got := h.OverdraftOf(name); got != want[name] {
			t.Fatalf("overdraft of %s: %d, want %d", name, got, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.leases)) {
		if before[name] != want[name] {
			wantChanged = append(wantChanged, name)
		}
	}
	for name := range old { // a Lease that was taken back is overdraft no more
		if h.leases[name] == nil {
			wantChanged = append(wantChanged, name)
		}
	}
	slices.Sort(wantChanged)
	if diff := cmp.Diff(wantChanged, changed); diff != "" {
		t.Fatalf("changed (-want +got):\n%s", diff)
	}
	h.checkParts(t, total)
	if again := h.Refresh(h.now); again != nil {
		t.Fatalf("changed though nothing did: %v", again)
	}
}

// checkParts compares the overdraft of envelopes, and its parts, with that of their Leases.
func (h *history) checkParts(t *rapid.T, total map[Key]int) {
	maps.DeleteFunc(total, func(_ Key, n int) bool { return n == 0 })
	got := map[Key]int{}
	for _, b := range []string{"a", "b", "c"} {
		for _, o := range h.Overdrafts(b) {
			got[o.Key] = o.GPUs
			sum := 0
			for t := range h.account(o.Key).over {
				for p, n := range h.account(o.Key).over[t] {
					if n < 0 || n > h.account(o.Key).gpus[t][p] {
						sum = -1 << 30
					}
					sum += n
				}
			}
			if sum != o.GPUs || o.Cause == "" {
				t.Fatalf("parts of the overdraft of %s add up to %d, want %d because of %q", o.Key, sum, o.GPUs, o.Cause)
			}
		}
	}
	if diff := cmp.Diff(total, got); diff != "" {
		t.Fatalf("overdraft by envelope (-want +got):\n%s", diff)
	}
	for _, b := range h.budgets {
		for _, s := range h.Status(b, h.now).Envelopes {
			held := int(s.OwnedGPUs + s.FamilyGPUs + s.LentGPUs + s.SpareGPUs + s.OverdraftGPUs)
			if at := h.account(Key{b.Name, s.Name}); held != at.inUse() || s.OwnedGPUs < 0 || s.FamilyGPUs < 0 ||
				s.LentGPUs < 0 || s.SpareGPUs < 0 {
				t.Fatalf("status of %s/%s adds up to %d, want %d", b.Name, s.Name, held, at.inUse())
			}
		}
	}
}
