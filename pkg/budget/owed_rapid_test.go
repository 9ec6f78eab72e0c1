package budget

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// future is what Runs that wait are to be paid on their dates.
type future struct {
	dated []dated
	owed  map[Key][]Owed
}

// dated is a Run that waits and has a date: what it asks for then, and what it is to be charged.
type dated struct {
	ask     Ask
	at      time.Time
	charges []Charge
	ousts   string // the Run that goes then, for certain; empty for none
}

// oust closes the Leases of the Run that goes for a dated one.
func (d *dated) oust(a *Accounts) {
	for lease, c := range a.charges {
		if d.ousts != "" && c.Run == d.ousts {
			a.Close(lease, d.at)
		}
	}
}

// pass closes what has ended by an instant.
func pass(a *Accounts, at time.Time) {
	for lease, c := range a.charges {
		if !c.Until.IsZero() && !c.Until.After(at) {
			a.Close(lease, c.Until)
		}
	}
}

// charge opens Leases for pods that somebody pays for on nodes of a zone; nil where nobody does.
func charge(a *Accounts, ask Ask, pods int, zone string, now time.Time) []Charge {
	c := a.Cover(ask, now)
	class := c.Class(map[string]string{"zone": zone})
	classes := make([]int, pods)
	for i := range classes {
		classes[i] = class
	}
	payers := c.Assign(classes, make([]bool, pods))
	if payers == nil {
		return nil
	}
	out := make([]Charge, pods)
	for i, p := range payers {
		o := &c.Offers[p]
		out[i] = Charge{Payer: o.Key, Owner: ask.Owner, Run: ask.Run, Relation: o.Relation, Role: rqv1.RoleActive,
			GPUs: ask.GPUsPerPod, Rate: FullRate, Start: now}
		if ask.MaxDuration > 0 {
			out[i].Until = now.Add(ask.MaxDuration)
		}
		a.Open(fmt.Sprintf("ns/%s-%d", ask.Run, i), out[i])
	}
	return out
}

// drawFuture has Runs be promised what can be paid on their dates, each beside those before it.
func drawFuture(t *rapid.T, r *reference) future {
	f, a := future{owed: map[Key][]Owed{}}, r.accounts()
	at := noon
	for i := range rapid.IntRange(1, 3).Draw(t, "dated") {
		at = at.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "until the date")) * 30 * time.Minute)
		ask := Ask{Owner: rapid.SampledFrom([]rqv1.Owner{"p:a", "p:b"}).Draw(t, "dated owner"), Flavor: "H100",
			GPUsPerPod: rapid.IntRange(1, 2).Draw(t, "GPUs of dated pods"), Run: fmt.Sprintf("dated%d", i),
			MaxDuration: time.Duration(rapid.IntRange(0, 3).Draw(t, "dated maxDuration")) * 30 * time.Minute,
			Funding:     from("x", "y")}
		pass(a, at)
		d := dated{ask: ask, at: at, charges: charge(a, ask, rapid.IntRange(1, 4).Draw(t, "dated pods"), "w", at)}
		if n := rapid.IntRange(0, i).Draw(t, "who goes for it"); n < i && f.dated[n].at.Before(at) {
			d.ousts = f.dated[n].ask.Run
			d.oust(a)
			f.goes(d.ousts, at)
		}
		f.dated = append(f.dated, d)
		for _, c := range d.charges {
			f.owed[c.Payer] = append(f.owed[c.Payer], Owed{Run: "ns/" + c.Run, At: at, GPUs: c.GPUs, Rate: c.Rate,
				Relation: c.Relation, MaxDuration: ask.MaxDuration})
		}
	}
	return f
}

// goes has it be known when a Run goes.
func (f *future) goes(run string, at time.Time) {
	for _, of := range f.owed {
		for i := range of {
			if o := &of[i]; o.Run == "ns/"+run && o.Goes.IsZero() {
				o.Goes = at
			}
		}
	}
}

// pays reports whether the same as were to can pay for a Run on its date.
func (d *dated) pays(a *Accounts) bool {
	c := a.Cover(d.ask, d.at)
	left := c.allowed()
	for _, paid := range d.charges {
		of := -1
		for i := range c.Offers {
			if o := &c.Offers[i]; o.Key == paid.Payer && o.Relation == paid.Relation && o.Refusal == "" {
				of = i
			}
		}
		if of < 0 || !c.charge(left, of, false) {
			return false
		}
	}
	return true
}

// TestWhatIsOwedCanBePaid has a Run start beside what is owed to others, with as many pods as it is offered. All of
// them are paid on their dates nevertheless.
func TestWhatIsOwedCanBePaid(t *testing.T) {
	var all beside
	for seed := range 200 { // which hold both, whatever is drawn besides
		one := rapid.Custom(owedCanBePaid).Example(seed)
		all.started, all.limited = all.started || one.started, all.limited || one.limited
	}
	if !all.started || !all.limited {
		t.Errorf("nothing was tried: %+v", all)
	}
	rapid.Check(t, func(t *rapid.T) { owedCanBePaid(t) })
}

// beside is whether a Run started beside what is owed, and whether it was offered less than without that.
type beside struct{ started, limited bool }

// owedCanBePaid draws what is owed, has a Run start and holds that all is paid.
func owedCanBePaid(t *rapid.T) (is beside) {
	r := draw(t)
	r.ask.Kept = nil
	r.ask.MaxDuration = time.Duration(rapid.IntRange(0, 5).Draw(t, "half hours")) * 30 * time.Minute
	f := drawFuture(t, r)
	a := r.accounts()
	pass(a, noon)
	free := a.Cover(r.ask, noon).Payable()
	r.ask.Run, r.ask.Owed = "young", func(k Key) []Owed { return f.owed[k] }
	pods := a.Cover(r.ask, noon).Payable() / r.ask.GPUsPerPod
	is.limited = pods*r.ask.GPUsPerPod < free
	for pods > 0 && charge(a, r.ask, pods, "w", noon) == nil {
		pods-- // who could pay for more does not on nodes of this zone
	}
	is.started = pods > 0
	for _, d := range f.dated {
		pass(a, d.at)
		if !d.pays(a) {
			t.Fatalf("%s, of which %+v was to be paid at %s, is not beside %d pods of %+v", d.ask.Run, d.charges, d.at, pods,
				r.ask)
		}
		for i, c := range d.charges {
			a.Open(fmt.Sprintf("ns/%s-%d", c.Run, i), c)
		}
		d.oust(a)
	}
	return is
}
