package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// overdraftFromTheOldest goes through all charges of a Budget, the oldest first, each of which has what is left.
func (a *Accounts) overdraftFromTheOldest(budget string, now time.Time) (over map[string]int, of []Overdraft) {
	type entry struct {
		lease string
		Charge
	}
	var all []entry
	wallets, caps, total := map[Key]*wallet{}, map[Key]*balance{}, map[Key]Overdraft{}
	for _, k := range a.paying[budget] {
		wallets[k] = a.walletOf(k, caps, now)
		for lease, c := range a.accounts[k].live {
			if c.Role != rqv1.RoleBorrowed {
				all = append(all, entry{lease, c})
			}
		}
	}
	slices.SortFunc(all, func(x, y entry) int {
		return cmp.Or(x.AdmittedAt().Compare(y.AdmittedAt()), strings.Compare(x.lease, y.lease))
	})
	over = map[string]int{}
	for _, c := range all {
		w := wallets[c.Payer]
		limits := w.balances
		if holderOf(c.Relation) == holderBorrower {
			limits = w.lent
		}
		allowed, cause := 0, w.refuses(&c.Charge, limits)
		if cause == "" {
			allowed, cause = c.GPUs, CauseConcurrency
			for _, b := range limits {
				allowed = min(allowed, b.left)
			}
			for _, b := range limits {
				b.left -= allowed
			}
		}
		if c.GPUs == allowed {
			continue
		}
		over[c.lease] = c.GPUs - allowed
		o, known := total[c.Payer]
		if !known {
			o = Overdraft{Key: c.Payer, Cause: cause}
		}
		o.GPUs += c.GPUs - allowed
		total[c.Payer] = o
	}
	for _, k := range slices.SortedFunc(maps.Keys(total), compareKeys) {
		of = append(of, total[k])
	}
	return over, of
}

// Of a Budget with several envelopes under shared caps, of which some lend, those Leases are overdraft that do not fit
// any more when all are gone through from the oldest on.
func TestOverdraftIsOfTheYoungest(t *testing.T) {
	relations := map[rqv1.Owner]rqv1.Relation{"p:own": rqv1.RelationOwn, "p:sib": rqv1.RelationSibling,
		"x:y": rqv1.RelationSponsor, "x:z": rqv1.RelationSponsor}
	rapid.Check(t, func(t *rapid.T) {
		b := of("b", "p:own")
		for i := range rapid.IntRange(1, 3).Draw(t, "envelopes") {
			e := rqv1.Envelope{Name: fmt.Sprint("e", i), Concurrency: rapid.Int32Range(0, 40).Draw(t, "concurrency")}
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				e.End = after(-time.Hour)
			case 1:
				e.Sharing = rqv1.SharingNone
			case 2:
				e.MaxGPUHours = ptr(rapid.Int64Range(0, 60).Draw(t, "hours"))
			}
			if rapid.Bool().Draw(t, "lends") {
				e.Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"x:y"},
					MaxConcurrency: ptr(rapid.Int32Range(0, 12).Draw(t, "lends at most"))}
			}
			b.Spec.Envelopes = append(b.Spec.Envelopes, e)
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "caps") {
			c := rqv1.AggregateCap{Name: fmt.Sprint("c", i), MaxConcurrency: ptr(rapid.Int32Range(0, 60).Draw(t, "cap"))}
			for j := range b.Spec.Envelopes {
				if rapid.Bool().Draw(t, "under it") {
					c.Envelopes = append(c.Envelopes, b.Spec.Envelopes[j].Name)
				}
			}
			capped(b, c)
		}
		a := accountsOf(b, flat("parent", "p", 1), flat("sibling", "p:sib", 1), flat("y", "x:y", 1), flat("z", "x:z", 1))
		for i := range rapid.IntRange(1, 30).Draw(t, "Leases") {
			owner := rapid.SampledFrom(slices.Sorted(maps.Keys(relations))).Draw(t, "owner")
			role := rapid.SampledFrom([]rqv1.LeaseRole{rqv1.RoleActive, rqv1.RoleActive, rqv1.RoleSpare,
				rqv1.RoleBorrowed}).Draw(t, "role")
			c := held(Key{"b", fmt.Sprint("e", rapid.IntRange(0, 3).Draw(t, "payer"))}, owner, relations[owner], role,
				rapid.IntRange(1, 8).Draw(t, "GPUs"))
			c.Start = noon.Add(-time.Duration(rapid.IntRange(0, 9).Draw(t, "age")) * time.Minute)
			a.Open(fmt.Sprintf("ns/%02d", i), c)
		}
		over, total := a.overdraftFromTheOldest("b", noon)
		a.Refresh(noon)
		for lease := range a.charges {
			if got := a.OverdraftOf(lease); got != over[lease] {
				t.Errorf("%d GPUs of %s are overdraft, want %d", got, lease, over[lease])
			}
		}
		if got := a.Overdrafts("b"); !slices.Equal(got, total) {
			t.Errorf("the overdraft is %v, want %v", got, total)
		}
	})
}
