package budget

import (
	"fmt"
	"slices"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestOverdraftIsLookedForWhereItMayHaveChanged says after which changes, and at which instants, the overdraft of
// Budget x is worked out anew.
func TestOverdraftIsLookedForWhereItMayHaveChanged(t *testing.T) {
	x, charged := Key{"x", "e"}, held(Key{"x", "e"}, "org:x", rqv1.RelationOwn, rqv1.RoleActive, 8)
	other := held(Key{"y", "e"}, "org:y", rqv1.RelationOwn, rqv1.RoleActive, 8)
	envelope := func(change func(*rqv1.Envelope)) *rqv1.Budget {
		e := rqv1.Envelope{Name: "e", Concurrency: 16}
		change(&e)
		return of("x", "org:x", e)
	}
	nothing := func(*Accounts) {}
	closes := envelope(func(e *rqv1.Envelope) { e.End = after(time.Hour) })
	opens := envelope(func(e *rqv1.Envelope) { e.Start = after(time.Hour) })
	bounded := envelope(func(e *rqv1.Envelope) { e.MaxGPUHours = ptr(int64(24)) })
	plain := envelope(func(*rqv1.Envelope) {})
	for what, c := range map[string]struct {
		budget *rqv1.Budget
		change func(*Accounts)
		after  time.Duration
		looks  bool
	}{
		"nothing":                     {plain, nothing, time.Hour, false},
		"another Budget pays":         {plain, func(a *Accounts) { a.Open("ns/other", other) }, time.Second, false},
		"it pays for more":            {plain, func(a *Accounts) { a.Open("ns/more", charged) }, 0, true},
		"it pays for less":            {plain, func(a *Accounts) { a.Close("ns/x", noon) }, 0, true},
		"what it paid for never was":  {plain, func(a *Accounts) { a.Void("ns/x") }, 0, true},
		"it is edited":                {plain, func(a *Accounts) { a.SetBudget(flat("x", "org:x", 4)) }, 0, true},
		"somebody's parents change":   {plain, func(a *Accounts) { a.SetBudget(flat("y", "org:z", 4)) }, 0, true},
		"a Budget is gone":            {plain, func(a *Accounts) { a.DeleteBudget("y") }, 0, true},
		"a node is another":           {plain, func(a *Accounts) { a.SetNode("n", "A100", nil) }, 0, true},
		"the clock is set back":       {plain, nothing, -time.Second, true},
		"its window has not closed":   {closes, nothing, time.Hour - 1, false},
		"its window closes":           {closes, nothing, time.Hour, true},
		"its window opens":            {opens, nothing, time.Hour, true},
		"its GPU-hours are not spent": {bounded, nothing, 2*time.Hour - time.Second, false},
		"its GPU-hours are spent":     {bounded, nothing, 2 * time.Hour, true},
	} {
		t.Run(what, func(t *testing.T) {
			a := accountsOf(c.budget, flat("y", "org:y", 8))
			a.Open("ns/x", charged)
			a.Refresh(noon)
			a.accounts[x].over[holderFamily][useSpare] = 99 // as long as nobody looks
			c.change(a)
			a.Refresh(noon.Add(c.after))
			same(t, "looked at", c.looks, a.accounts[x].over[holderFamily][useSpare] != 99)
		})
	}
}

// TestBudgetsAreLookedAtInOrder of their names, some at a time.
func TestBudgetsAreLookedAtInOrder(t *testing.T) {
	a := NewAccounts(rates)
	for i := range 10 {
		b := fmt.Sprint("b", i)
		a.SetBudget(flat(b, "o", 4))
		a.Open("ns/"+b, held(Key{b, "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 8))
	}
	var changed []string
	for some := range slices.Chunk(a.Stale(noon), 4) {
		changed = append(changed, fmt.Sprint(a.RefreshOf(some, noon)))
	}
	same(t, "changed at a time", []string{"[ns/b0 ns/b1 ns/b2 ns/b3]", "[ns/b4 ns/b5 ns/b6 ns/b7]", "[ns/b8 ns/b9]"},
		changed)
	same(t, "to be looked at after that", []string(nil), a.Stale(noon))
}

// TestAClockThatIsSetBackIsNoticed although what a process has measured of time meanwhile goes on.
func TestAClockThatIsSetBackIsNoticed(t *testing.T) {
	a, now := accountsOf(flat("x", "org:x", 4)), time.Now()
	a.Refresh(now)
	if a.fresh.seen != now.Round(0) {
		t.Errorf("seen at %v, want what the clock shows and nothing else", a.fresh.seen)
	}
}

// TestALeaseThatAnotherPaysFor is overdraft as it is there, in whatever order the Budgets are looked at.
func TestALeaseThatAnotherPaysFor(t *testing.T) {
	for gpus, want := range map[int32]int{4: 4, 8: 0} {
		for range 20 {
			a := accountsOf(flat("x", "org:x", 4), flat("y", "org:x", gpus))
			a.Open("ns/l", held(Key{"x", "e"}, "org:x", rqv1.RelationOwn, rqv1.RoleActive, 8))
			a.Refresh(noon)
			a.Open("ns/l", held(Key{"y", "e"}, "org:x", rqv1.RelationOwn, rqv1.RoleActive, 8))
			a.Refresh(noon)
			if over := a.OverdraftOf("ns/l"); over != want {
				t.Fatalf("%d GPUs are overdraft, want %d", over, want)
			}
		}
	}
}
