package resolver

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ExactOdds says that probabilities were counted out and not sampled.
const ExactOdds = "exact"

// Odds returns the conflict set for a Run that waits: what may be cut, with the probability that Resolve cuts it, in
// the order in which it is published, and how the probabilities were found, `exact` or `sampled 400, within 0.05 at 95
// %`. It returns false if the Run would not start even when everything is cut, and an empty set when it starts without
// cuts.
//
// Spares and steps that no way of drawing cuts are left out of an exact answer; a sampled answer lists all. The tickets
// are listed whenever there is a lottery, since it cannot be run again without them. A ticket's GPUs are the rest of
// its Run, with the spares and steps that no entry lists.
func Odds(w Feasibility, candidates []Candidate) ([]rqv1.Conflict, string, bool) {
	t := newSimulation(w, candidates)
	defer t.restore()
	if t.fits() {
		return nil, ExactOdds, true
	}
	if !t.possible() {
		return nil, "", false
	}
	o := newOdds(t)
	structure := t.structural()
	t.chosen.add(structure...)
	if t.fits() {
		t.chosen = newSet(len(t.units))
		t.cutUntilFits(structure)
		t.putBackUnneeded(nil)
		o.note(big.NewRat(1, 1))
		o.sumUp()
		return o.conflicts(false, false), ExactOdds, true
	}
	o.all = newUrn(t.tickets())
	if o.exact() {
		payers := o.sumUp()
		return o.conflicts(true, false), ExactOdds + payers, true
	}
	o.outcomes, o.at = nil, map[string]int{}
	size := o.sample()
	payers := o.sumUp()
	return o.conflicts(true, true), fmt.Sprintf("sampled %d, within %s at 95 %%%s", size, margin(size), payers), true
}

// tickets lists the tickets that can be drawn, by owner, namespace and name.
func (t *simulation) tickets() []Ticket {
	var tickets []Ticket
	for _, p := range t.units {
		own := t.candidates[p.candidate]
		if p.action == rqv1.CutLottery {
			tickets = append(tickets, Ticket{Owner: own.Owner, Run: own.Run})
		}
	}
	return tickets
}

// conflicts lists the entries with their probabilities.
func (o *odds) conflicts(lottery, sampled bool) []rqv1.Conflict {
	var out []rqv1.Conflict
	for _, action := range actions {
		for i := range o.trial.candidates {
			c := o.conflict(i, action, lottery, sampled)
			if c.GPUs > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

// conflict states one entry; it has no GPUs when there is no such entry.
func (o *odds) conflict(candidate int, action rqv1.CutAction, lottery, sampled bool) rqv1.Conflict {
	own := &o.trial.candidates[candidate]
	c := rqv1.Conflict{Run: own.Run, Owner: own.Owner, Action: action, Probability: o.probability(candidate, action)}
	if action == rqv1.CutShrink {
		c.Width = o.narrowest[entryKey{own.Run, action}]
	}
	listed := func(a rqv1.CutAction) bool { return sampled || o.listed(candidate, a) }
	ticket := action == rqv1.CutLottery && lottery && own.draws()
	if ticket {
		c.Priority = own.Priority
	}
	if !ticket && (action == rqv1.CutLottery || !listed(action)) {
		return c
	}
	for _, p := range o.trial.of[candidate] {
		unit := &o.trial.units[p]
		step := o.stepOf(p)
		with := unit.action == rqv1.CutDropSpare && !listed(unit.action) && step != "" && listed(step)
		if unit.action == action || with && action == step || ticket && !listed(unit.action) && !with {
			c.GPUs += int32(unit.gpus)
		}
	}
	return c
}

// stepOf returns what giving up the step is that a spare goes with; empty for one that goes with none.
func (o *odds) stepOf(p int) rqv1.CutAction {
	for step, spares := range o.trial.goesWith {
		if slices.Contains(spares, p) {
			return o.trial.units[step].action
		}
	}
	return ""
}

// Decimal writes a probability as conflict sets do: with at most four places, rounded half away from zero.
func Decimal(p *big.Rat) string {
	return strings.TrimSuffix(strings.TrimRight(p.FloatString(4), "0"), ".")
}
