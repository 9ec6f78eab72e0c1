package resolver

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// odds sums up how likely each cut is.
type odds struct {
	trial    *simulation
	all      urn
	outcomes []outcome
	at       map[string]int // indexes of outcomes by what is cut
	steps    int            // beginnings of draws that have been walked
	cut      sum            // by draws alone
	paid     []sum          // how much more by payments, by owner

	narrowest map[entryKey]int32 // to which Runs are shrunk
}

// outcome is what draws cut before anybody pays for another, and how likely that is beside other outcomes.
type outcome struct {
	cut    set
	weight *big.Rat
}

// sum is how much weight there is in all, and of each entry.
type sum struct {
	total   *big.Rat
	weights map[entryKey]*big.Rat
}

func newSum() sum { return sum{new(big.Rat), map[entryKey]*big.Rat{}} }

func newOdds(t *simulation) *odds {
	o := &odds{trial: t, at: map[string]int{}, cut: newSum(), narrowest: map[entryKey]int32{}}
	for range slices.Max(append(t.ownerOf, 0)) + 1 {
		o.paid = append(o.paid, newSum())
	}
	return o
}

// note notes an outcome.
func (o *odds) note(weight *big.Rat) {
	key := string(o.trial.chosen.appendTo(nil))
	i, ok := o.at[key]
	if !ok {
		i = len(o.outcomes)
		o.at[key], o.outcomes = i, append(o.outcomes, outcome{slices.Clone(o.trial.chosen), new(big.Rat)})
	}
	o.outcomes[i].weight.Add(o.outcomes[i].weight, weight)
}

// sumUp adds up what outcomes cut, and how much more or less that is once those pay who do. The draws are all worked
// out before: how must not depend on priorities. It returns what is to be said of outcomes whose payments took too many
// questions to be worked out.
func (o *odds) sumUp() string {
	ofOwner := make([][]int, len(o.paid))
	for i, owner := range o.trial.ownerOf {
		ofOwner[owner] = append(ofOwner[owner], i)
	}
	for i := range o.outcomes {
		o.trial.chosen = o.outcomes[i].cut
		o.cut.total.Add(o.cut.total, o.outcomes[i].weight)
		for _, own := range ofOwner {
			o.count(&o.cut, own, o.outcomes[i].weight)
		}
	}
	o.shuffle()
	least := len(o.outcomes)
	for owner, own := range ofOwner {
		if slices.ContainsFunc(own, func(i int) bool { return o.trial.candidates[i].Priority != nil }) {
			least = min(least, o.sumPaid(&o.paid[owner], own))
		}
	}
	if least < len(o.outcomes) {
		return fmt.Sprintf("; who pays by %d of %d outcomes", least, len(o.outcomes))
	}
	return ""
}

// shuffle puts outcomes in an order that anybody can work out, so that those first are like the others.
func (o *odds) shuffle() {
	d := newDraw(publicSeed(o.all), nil)
	for i := range o.outcomes {
		j := i + d.below(len(o.outcomes)-i)
		o.outcomes[i], o.outcomes[j] = o.outcomes[j], o.outcomes[i]
	}
}

// sumPaid adds up what one owner's payments change for it, as if no other's Runs paid, and returns for how many
// outcomes. No more are looked at once its share of questions has been asked. What others asked is not known to
// it.
func (o *odds) sumPaid(s *sum, own []int) int {
	t := o.trial
	known, asked := t.answers, t.asks
	t.answers = maps.Clone(known)
	defer func() { t.answers = known }()
	for n, out := range o.outcomes {
		if t.asks-asked >= t.share {
			return n
		}
		s.total.Add(s.total, out.weight)
		t.chosen = out.cut
		if len(t.pay(o.ticketsOf(own))) > 0 {
			o.count(s, own, out.weight)
			t.chosen = out.cut
			o.count(s, own, new(big.Rat).Neg(out.weight))
		}
	}
	return len(o.outcomes)
}

// ticketsOf lists the tickets of candidates.
func (o *odds) ticketsOf(candidates []int) []int {
	var out []int
	for _, i := range candidates {
		if p, ok := o.trial.unitOf[o.trial.candidates[i].Run]; ok {
			out = append(out, p)
		}
	}
	return out
}

// count adds up what is cut of candidates.
func (o *odds) count(s *sum, candidates []int, weight *big.Rat) {
	for _, i := range candidates {
		for _, action := range actions {
			if c := o.trial.cutOf(i, action); c.GPUs > 0 {
				key := entryKey{c.Run, c.Action}
				if s.weights[key] == nil {
					s.weights[key] = new(big.Rat)
				}
				s.weights[key].Add(s.weights[key], weight)
				if c.Width != nil && (o.narrowest[key] == 0 || *c.Width < o.narrowest[key]) {
					o.narrowest[key] = *c.Width
				}
			}
		}
	}
}

// probability in at most four decimals.
func (o *odds) probability(candidate int, action rqv1.CutAction) string {
	key, p := entryKey{o.trial.candidates[candidate].Run, action}, new(big.Rat)
	for _, s := range []sum{o.cut, o.paid[o.trial.ownerOf[candidate]]} {
		if s.weights[key] != nil {
			p.Add(p, new(big.Rat).Quo(s.weights[key], s.total))
		}
	}
	switch one := big.NewRat(1, 1); {
	case p.Sign() < 0:
		p = new(big.Rat)
	case p.Cmp(one) > 0:
		p = one
	}
	return Decimal(p)
}

// listed reports whether some outcome makes a cut, before those pay who do or then.
func (o *odds) listed(candidate int, action rqv1.CutAction) bool {
	key := entryKey{o.trial.candidates[candidate].Run, action}
	return o.cut.weights[key] != nil || o.paid[o.trial.ownerOf[candidate]].weights[key] != nil
}
