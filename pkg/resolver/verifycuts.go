package resolver

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// checkCuts checks that what was cut had been published, and that a Run ended by lottery was drawn.
func (v *verifier) checkCuts() {
	seen, ended := map[entryKey]bool{}, map[rqv1.NamespacedName]bool{}
	for _, c := range v.status.Cuts {
		if c.Action == rqv1.CutLottery {
			ended[c.Run] = true
		}
	}
	for i, c := range v.status.Cuts {
		key := entryKey{c.Run, c.Action}
		if seen[key] {
			v.say("Cut %d repeats %s of %s.", i+1, c.Action, name(c.Run))
		}
		if ended[c.Run] && c.Action != rqv1.CutLottery {
			v.say("Cut %d is %s of %s, which another cut ends anyway.", i+1, c.Action, name(c.Run))
		}
		seen[key] = true
		v.checkListed(i, &c)
		v.checkForm(i, &c)
		if c.Action == rqv1.CutLottery && !v.drawn(c.Run) && v.payments(c.Run) == 0 {
			v.say("Cut %d ends %s by lottery, which was not drawn, nor pays for one that was.", i+1, name(c.Run))
		}
	}
	v.checkLast(seen)
}

func (v *verifier) drawn(run rqv1.NamespacedName) bool {
	return slices.ContainsFunc(v.lottery.Draws, func(d rqv1.Draw) bool { return d.Run == run })
}

// payments counts how often a Run is said to pay, and ends reports whether it is ended by lottery.
func (v *verifier) payments(run rqv1.NamespacedName) (n int) {
	for i := range v.lottery.Draws {
		for _, by := range v.lottery.Draws[i].PaidBy {
			if by == run {
				n++
			}
		}
	}
	return n
}

func (v *verifier) ends(run rqv1.NamespacedName) bool {
	return slices.ContainsFunc(v.status.Cuts, func(c rqv1.Cut) bool { return c.Run == run && c.Action == rqv1.CutLottery })
}

// checkListed checks that a cut is in the conflict set, and takes no more than that says.
func (v *verifier) checkListed(i int, c *rqv1.Cut) {
	listed := slices.ContainsFunc(v.status.ConflictSet, func(e rqv1.Conflict) bool {
		return e.Run == c.Run && e.Action == c.Action
	})
	most := listedGPUs(c, v.status.ConflictSet)
	switch {
	case !listed:
		v.say("Cut %d is %s of %s, which the conflict set does not list.", i+1, c.Action, name(c.Run))
	case c.GPUs < 1 || int64(c.GPUs) > most:
		v.say("Cut %d is %s of %s with %d GPUs, but the conflict set lists %d.", i+1, c.Action, name(c.Run), c.GPUs, most)
	}
}

// checkForm checks that a cut says what its action needs and nothing else.
func (v *verifier) checkForm(i int, c *rqv1.Cut) {
	if c.Action.Narrows() != (c.Width != nil) {
		v.say("Cut %d is %s of %s: a width is stated by every Shrink and Return and by nothing else.", i+1, c.Action,
			name(c.Run))
	}
	if drops := c.Action == rqv1.CutDropSpare; drops != (len(c.Spares) > 0) {
		v.say("Cut %d is %s of %s: spares are stated by every DropSpare and by nothing else.", i+1, c.Action, name(c.Run))
	}
}

// checkLast checks that drawing stopped where it had to: the last ticket made the Run fit, so it is cut, or paid for.
// Who pays for other draws may free so much more that it is spared.
func (v *verifier) checkLast(cut map[entryKey]bool) {
	draws := v.lottery.Draws
	if len(draws) == 0 {
		return
	}
	paid := slices.ContainsFunc(draws, func(d rqv1.Draw) bool { return len(d.PaidBy) > 0 })
	if last := draws[len(draws)-1]; !paid && !cut[entryKey{last.Run, rqv1.CutLottery}] {
		v.say("Draw %d, the last, is %s, which is not cut, although drawing stops with the first ticket that is enough.",
			len(draws), name(last.Run))
	}
}
