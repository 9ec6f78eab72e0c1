package budget

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// What is owed to the first of its owner's line, which has no date, is kept from all who do not end soon, for as long
// as it takes; with a date it is kept however far off that is.
func TestKeptForTheFirst(t *testing.T) {
	dateless := Owed{Run: "ns/large", First: true, Within: 15 * time.Minute, GPUs: 16, Wants: 16, Rate: FullRate,
		Relation: rqv1.RelationOwn}
	far := dateless
	far.At = noon.Add(100 * time.Hour)
	soon := Owed{Run: "ns/dated", At: noon.Add(time.Hour), GPUs: 4, Rate: FullRate, Relation: rqv1.RelationOwn}
	beyond := soon
	beyond.At = noon.Add(100 * time.Hour)
	for name, test := range map[string]struct {
		owed  []Owed
		lasts time.Duration
		want  int // GPUs of 24 that are offered
		text  string
	}{
		"from one that may go on for ever": {owed: []Owed{dateless}, want: 8,
			text: "concurrency: 8 of 24 GPUs left, 16 reserved for Run ns/large, first in line for what its owner may spend, " +
				"usable while it has no date by Runs whose maxDuration is at most 15m"},
		"from one that ends later":       {owed: []Owed{dateless}, lasts: 16 * time.Minute, want: 8},
		"not from one that ends as soon": {owed: []Owed{dateless}, lasts: 15 * time.Minute, want: 24},
		"beside a date": {owed: []Owed{dateless, soon}, want: 4,
			text: "concurrency: 4 of 24 GPUs left, 20 reserved for Run ns/large and 1 more, the first, first in line for what " +
				"its owner may spend"},
		"with a date that is far off":                   {owed: []Owed{far}, want: 8},
		"not from one that ends before that":            {owed: []Owed{far}, lasts: 99 * time.Hour, want: 24},
		"no other's whose date is as far off":           {owed: []Owed{beyond}, want: 24},
		"the first's alone of several that are far off": {owed: []Owed{beyond, far}, want: 8},
	} {
		t.Run(name, func(t *testing.T) {
			a := accountsOf(flat("a", "a", 24))
			c := a.Cover(Ask{Owner: "a", Flavor: "H100", GPUsPerPod: 1, MaxDuration: test.lasts,
				Owed: func(Key) []Owed { return OwedAt(test.owed, noon, 24*time.Hour) }}, noon)
			if got := c.Payable(); got != test.want {
				t.Errorf("%d GPUs are offered, want %d", got, test.want)
			}
			if got := c.Offers[0].Limit.String(); test.text != "" && got != test.text {
				t.Errorf("it says\n%s, want\n%s", got, test.text)
			}
		})
	}
}

// Nobody else's envelopes are asked what the owner's own would pay for.
func TestWhatTheOwnersOwnWouldPay(t *testing.T) {
	a := accountsOf(flat("a", "p:a", 8), flat("b", "p:b", 8), flat("p", "p", 8), flat("s", "s", 8))
	a.Open("l", Charge{Payer: Key{"a", "e"}, Owner: "p:a", Run: "other", Relation: rqv1.RelationOwn, Role: rqv1.RoleActive,
		GPUs: 8, Rate: FullRate, Start: noon})
	c := a.Cover(Ask{Owner: "p:a", Flavor: "H100", GPUsPerPod: 1, Funding: from("s"), Unheld: true, Alone: true}, noon)
	if got := c.Payable(); got != 8 || len(c.Offers) != 1 {
		t.Errorf("%d GPUs are offered by %d envelopes, want 8 by one", got, len(c.Offers))
	}
}

// Under a cap over several envelopes of which each could pay for it all, what the first of a line wants is kept once.
func TestTheFirstIsKeptWhatItWantsOnce(t *testing.T) {
	most := int32(24)
	b := capped(of("a", "a", rqv1.Envelope{Name: "e", Concurrency: 24}, rqv1.Envelope{Name: "f", Concurrency: 24}),
		rqv1.AggregateCap{Name: "both", Flavor: "H100", Envelopes: []string{"e", "f"}, MaxConcurrency: &most})
	owed := []Owed{{Run: "ns/large", First: true, Within: time.Minute, GPUs: 16, Wants: 16, Rate: FullRate,
		Relation: rqv1.RelationOwn}}
	c := accountsOf(b).Cover(Ask{Owner: "a", Flavor: "H100", GPUsPerPod: 1,
		Owed: func(Key) []Owed { return owed }}, noon)
	if got := c.Payable(); got != 8 {
		t.Errorf("%d GPUs are offered, want the 8 of 24 that are not kept", got)
	}
}
