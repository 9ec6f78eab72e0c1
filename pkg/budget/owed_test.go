package budget

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// What an envelope owes to Runs that have dates is offered to nobody else, unless it is back by then.
func TestOfferBesideWhatIsOwed(t *testing.T) {
	owe := func(run string, in time.Duration, gpus int, lasts time.Duration) Owed {
		return Owed{Run: run, At: noon.Add(in), GPUs: gpus, Rate: FullRate, Relation: rqv1.RelationOwn, MaxDuration: lasts}
	}
	gone := func(o Owed, in time.Duration) Owed {
		o.Goes = noon.Add(in)
		return o
	}
	const dated = ", 16 reserved for Run ns/big to start at 2026-03-01T12:15:00Z"
	ends := held(Key{"a", "e"}, "a", rqv1.RelationOwn, rqv1.RoleActive, 8)
	ends.Until = noon.Add(10 * time.Minute)
	metered := func(hours int64) *rqv1.Budget {
		b := flat("a", "a", 16)
		b.Spec.Envelopes[0].MaxGPUHours = &hours
		return b
	}
	for name, test := range map[string]struct {
		budget *rqv1.Budget
		owed   []Owed
		lasts  time.Duration
		held   []Charge
		want   string
	}{
		"all of it": {budget: flat("a", "a", 16), owed: []Owed{owe("ns/big", 15*time.Minute, 16, 0)},
			want: "0 own a/e: 0 pods, concurrency: 0 of 16 GPUs left" + dated + meanwhile},
		"to a Run that ends by then": {budget: flat("a", "a", 16), owed: []Owed{owe("ns/big", 15*time.Minute, 16, 0)},
			lasts: 15 * time.Minute, want: "0 own a/e: 2 pods, concurrency: 16 of 16 GPUs left"},
		"what ends by then is there": {budget: flat("a", "a", 24), owed: []Owed{owe("ns/big", 15*time.Minute, 16, 0)},
			held: []Charge{ends},
			want: "0 own a/e: 1 pods, concurrency: 8 of 24 GPUs left, 8 reserved for Run ns/big to start at " +
				"2026-03-01T12:15:00Z" + meanwhile},
		"one after the other": {budget: flat("a", "a", 16), owed: []Owed{owe("ns/first", 10*time.Minute, 8, 5*time.Minute),
			owe("ns/then", 15*time.Minute, 8, 0)},
			want: "0 own a/e: 1 pods, concurrency: 8 of 16 GPUs left, 8 reserved for Run ns/first to start at " +
				"2026-03-01T12:10:00Z" + meanwhile},
		"one for the other": {budget: flat("a", "a", 24), owed: []Owed{
			gone(owe("ns/first", 10*time.Minute, 8, 0), 15*time.Minute), owe("ns/then", 15*time.Minute, 8, 0),
			owe("ns/last", 20*time.Minute, 8, 0)},
			want: "0 own a/e: 1 pods, concurrency: 8 of 24 GPUs left, 16 reserved for Run ns/first and 1 more, the first to " +
				"start at 2026-03-01T12:10:00Z" + meanwhile},
		"to several": {budget: flat("a", "a", 24), owed: []Owed{owe("ns/first", 10*time.Minute, 8, 0),
			owe("ns/then", 15*time.Minute, 8, 0)},
			want: "0 own a/e: 1 pods, concurrency: 8 of 24 GPUs left, 16 reserved for Run ns/first and 1 more, the first to " +
				"start at 2026-03-01T12:10:00Z" + meanwhile},
		"GPU-hours, also of what has ended by then": {budget: metered(33),
			owed: []Owed{owe("ns/big", 15*time.Minute, 16, 2*time.Hour)}, lasts: 15 * time.Minute,
			want: "0 own a/e: 0 pods, maxGPUHours: 1.00000 of 33.00000 GPU-hours left, 32.00000 reserved for Run ns/big to " +
				"start at 2026-03-01T12:15:00Z"},
		"GPU-hours until its date": {budget: metered(40), owed: []Owed{owe("ns/big", 4*time.Hour, 1, 0)},
			want: "0 own a/e: 0 pods, maxGPUHours: 39.00000 of 40.00000 GPU-hours left, 1.00000 reserved for Run ns/big to " +
				"start at 2026-03-01T16:00:00Z"},
		"a date that has come": {budget: flat("a", "a", 16), owed: []Owed{owe("ns/big", -time.Minute, 16, 0)},
			want: "0 own a/e: 0 pods, concurrency: 0 of 16 GPUs left, 16 reserved for Run ns/big to start at " +
				"2026-03-01T11:59:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			a := accountsOf(test.budget)
			for _, c := range test.held {
				a.Open("ns/held", c)
			}
			ask := Ask{Owner: "a", Flavor: "H100", GPUsPerPod: 8, MaxDuration: test.lasts,
				Owed: func(Key) []Owed { return test.owed }}
			same(t, "offers", []string{test.want}, offers(a.Cover(ask, noon)))
		})
	}
}

const meanwhile = ", usable until then by Runs whose maxDuration ends earlier"

// Who is refused for what is owed is told to end before, if that would do.
func TestEndingBeforeADateIsAdvised(t *testing.T) {
	a := accountsOf(flat("a", "a", 16))
	ask := Ask{Owner: "a", Flavor: "H100", GPUsPerPod: 8, Owed: func(Key) []Owed {
		return []Owed{{Run: "ns/big", At: noon.Add(90*time.Minute + time.Second), GPUs: 16, Rate: FullRate,
			Relation: rqv1.RelationOwn}}
	}}
	same(t, "changes", []Change{
		{"set spec.runtime.maxDuration to 1h30m or less, so that the Run ends before Run ns/big starts", 8},
		{"raise envelopes[e].concurrency of Budget a from 16 to 24", 8},
	}, a.Changes(ask, 8, noon))
}
