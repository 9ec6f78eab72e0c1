package budget

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Exchanges returns the pairs of a Run's open Leases that are to exchange payers, so that who pays first (R2: owner,
// siblings, ancestors, sponsors) pays for the first of them: the others are given back before (R6, R19). The Leases are
// given in order. Each is in one pair at most. An exchange changes nothing of what any payer pays, nor of who lends: of
// two Leases only that are alike, and only where each payer pays on the other's node (R3). Whether he would lend anew
// makes no difference. It takes no longer than Leases times kinds of them.
func (a *Accounts) Exchanges(leases []string) [][2]string {
	steps := make([]int, len(leases))
	for i, lease := range leases {
		charge := a.charges[lease]
		steps[i] = charge.Relation.Step()
	}
	if slices.IsSorted(steps) {
		return nil
	}
	var out [][2]string
	kinds, exchanged := a.kindsOf(leases), make([]bool, len(leases))
	for low, lease := range leases {
		if exchanged[low] {
			continue
		}
		charge, high := a.charges[lease], -1
		for _, k := range kinds {
			k.forget(exchanged)
			if last := k.last(); last > low && steps[last] < steps[low] && a.mayExchange(&charge, &k.charge) &&
				(high < 0 || steps[last] < steps[high] || steps[last] == steps[high] && last > high) {
				high = last
			}
		}
		if high >= 0 {
			exchanged[low], exchanged[high] = true, true
			out = append(out, [2]string{lease, leases[high]})
		}
	}
	return out
}

// kind are those of a Run's Leases, in order, that are the same to whoever may exchange payers with them.
type kind struct {
	charge Charge
	leases []int
}

// last returns the last of them, -1 for none.
func (k *kind) last() int {
	if len(k.leases) == 0 {
		return -1
	}
	return k.leases[len(k.leases)-1]
}

// forget takes those off the end that have exchanged payers.
func (k *kind) forget(exchanged []bool) {
	for len(k.leases) > 0 && exchanged[k.last()] {
		k.leases = k.leases[:len(k.leases)-1]
	}
}

// kindsOf sorts Leases by their kind: by who pays for what, and by which of the Run's payers pay on their nodes.
func (a *Accounts) kindsOf(leases []string) []*kind {
	type key struct {
		payer   Key
		step    int
		gpus    int
		rate    Rate
		role    rqv1.LeaseRole
		reached string
	}
	var payers []envelope
	seen := map[Key]bool{}
	for _, lease := range leases {
		payer := a.charges[lease].Payer
		if e, known := a.find(payer); known && !seen[payer] {
			payers = append(payers, e)
		}
		seen[payer] = true
	}
	var out []*kind
	by := map[key]*kind{}
	for i, lease := range leases {
		c := a.charges[lease]
		reached := make([]byte, len(payers))
		for j, e := range payers {
			if a.nodes.covered(e, &c) {
				reached[j] = 1
			}
		}
		is := key{c.Payer, c.Relation.Step(), c.GPUs, c.Rate, c.Role, string(reached)}
		if by[is] == nil {
			by[is] = &kind{charge: c}
			out = append(out, by[is])
		}
		by[is].leases = append(by[is].leases, i)
	}
	return out
}

// mayExchange reports whether two charges of a Run take the same of whoever pays, and each payer pays on the other's
// node. Until when each pays stays as it is: the Leases of a start end within its seconds.
func (a *Accounts) mayExchange(one, other *Charge) bool {
	pays := func(payer, c *Charge) bool {
		e, known := a.find(payer.Payer)
		return known && a.nodes.covered(e, c)
	}
	return one.GPUs == other.GPUs && one.Rate == other.Rate && one.Role == other.Role &&
		pays(one, other) && pays(other, one)
}
