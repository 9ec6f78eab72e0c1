package budget

import (
	"fmt"
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

// Who is refused for what is owed is told to end before, if that would do, and by when: the advice is read later. Who
// is refused for GPU-hours is told for how long what is left of them would do.
func TestEndingSoonerIsAdvised(t *testing.T) {
	big := Owed{Run: "ns/big", At: noon.Add(90*time.Minute + time.Second), GPUs: 16, Rate: FullRate,
		Relation: rqv1.RelationOwn}
	before := Change{"set spec.runtime.maxDuration to 1h30m or less, so that the Run ends before Run ns/big starts at " +
		"2026-03-01T13:30:01Z", 8}
	raise := func(limit string, from, to int) Change {
		return Change{fmt.Sprintf("raise envelopes[e].%s of Budget a from %d to %d", limit, from, to), 8}
	}
	within := func(most string) Change {
		return Change{"set spec.runtime.maxDuration to " + most + " or less, so that the GPU-hours that are left are enough",
			8}
	}
	metered := func(hours int64) *rqv1.Budget {
		b := flat("a", "a", 64)
		b.Spec.Envelopes[0].MaxGPUHours = &hours
		return b
	}
	small := big
	small.GPUs, small.At = 1, noon.Add(4*time.Hour)
	early := big
	early.Run, early.GPUs, early.At = "ns/early", 8, noon.Add(time.Hour)
	for name, test := range map[string]struct {
		budget *rqv1.Budget
		lasts  time.Duration
		owed   []Owed
		want   []Change
	}{
		"GPUs": {flat("a", "a", 16), 0, []Owed{big}, []Change{before, raise("concurrency", 16, 24)}},
		"GPUs, it says 10h": {flat("a", "a", 16), 10 * time.Hour, []Owed{big}, []Change{before,
			raise("concurrency", 16, 24)}},
		"GPUs, two dates of which one leaves enough": {flat("a", "a", 24), 0, []Owed{early, big}, []Change{before,
			raise("concurrency", 24, 32)}},
		"GPU-hours for another until a date": {metered(40), 0, []Owed{small}, []Change{within("4h52m"),
			raise("maxGPUHours", 40, 41)}},
		"GPU-hours to its end":  {metered(40), 10 * time.Hour, nil, []Change{within("5h"), raise("maxGPUHours", 40, 80)}},
		"GPU-hours for an hour": {metered(4), 0, nil, []Change{within("30m"), raise("maxGPUHours", 4, 8)}},
		"no GPU-hours":          {metered(0), 0, nil, []Change{raise("maxGPUHours", 0, 8)}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := Ask{Owner: "a", Flavor: "H100", GPUsPerPod: 8, MaxDuration: test.lasts}
			if test.owed != nil {
				ask.Owed = func(Key) []Owed { return test.owed }
			}
			same(t, "changes", test.want, accountsOf(test.budget).Changes(ask, 8, noon))
		})
	}
}
