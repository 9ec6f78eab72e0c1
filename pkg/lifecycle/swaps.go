package lifecycle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// swaps are what makes up for the ranks that a running gang has lost (R26).
type swaps struct {
	// claims are the pods that take the places of spares, as they record it, by the spare's UID.
	claims map[types.UID]*corev1.Pod
	// relief are the replacements to be made, by rank.
	relief map[int]rank.Replacement
	// stuck says that a rank finds neither room nor a spare, and narrower at which width in GPUs the Run could go on
	// without; 0 when there is none.
	stuck    bool
	narrower int32
}

// swapsOf finds a spare for every rank that was lost with its node, and for every one that has found no room. A rank
// whose pod is there already, and waits in vain, is made anew with the record of its spare. A cohort under way has no
// ranks yet that could be lost: it is completed, or given up.
func swapsOf(f *facts, c *cuts, w width, r *roster) swaps {
	s := swaps{claims: claimsIn(r), relief: map[int]rank.Replacement{}}
	if f.Shape != nil || c.final != nil {
		return s
	}
	if !saysRunning(f.Run) {
		s.restartStarting(f, r)
		return s
	}
	short := shortOfRoom(f, w)
	free := standBySpares(f, c, w, r, s.claims)
	swaps := false
	for index, pod := range r.core() {
		made, lost, again := rank.Replacement{}, false, false
		switch {
		case pod == nil:
			made, lost = lostRank(f, index)
			if !lost {
				made, again = restartOf(f, index)
				lost = made.Lost != ""
			}
		case bound(pod) || !active(pod) || f.leaseOf[pod.UID] != nil || f.swapping(pod):
			continue
		}
		if f.gaveUp(index) { // it takes nobody's place
			continue
		}
		group := w.shape.GroupOf(index)
		at := slices.IndexFunc(free[group], func(spare *corev1.Pod) bool {
			return f.AcceptsRank(spare.Spec.NodeName, index) && f.mayTake(pod, index) &&
				(short || !f.movesAgain(&made, spare) && !f.goesBack(index, &made))
		})
		if at >= 0 && (lost || short) {
			spare := free[group][at]
			made.Spare, made.SpareUID, made.Node = spare.Name, spare.UID, spare.Spec.NodeName
			free[group], swaps = slices.Delete(free[group], at, at+1), true
		}
		if lost || again || made.Spare != "" {
			s.relief[index] = made
		}
	}
	s.stuck = short && !swaps && !slices.ContainsFunc(r.core(), f.swapping) && f.lostInVain(r.core())
	s.narrower = f.Narrower
	if f.notTaken() && slices.Contains(r.core(), nil) {
		s.stuck, s.narrower = true, narrowerBy(w.kept, r.core())
	}
	return s
}

// goesBack reports whether a rank whose node is in service goes back there rather than to a spare: people had it leave,
// and the node has done nothing, as far as the status tells. It does not where they had it leave again soon after.
func (f *facts) goesBack(index int, made *rank.Replacement) bool {
	deaths := f.Run.Status.Deaths
	told := slices.ContainsFunc(deaths, func(d rqv1.RunDeath) bool {
		return int(d.Index) == index && d.Node == made.Lost && d.Sign == made.Sign
	})
	if !told || !ending.ByPeople(made.Sign) || !f.AcceptsRank(made.Lost, index) {
		return false
	}
	avoided, _ := ending.Avoided(deaths, index, f.Now)
	return !slices.Contains(avoided, made.Lost)
}

// mayTake reports whether a rank is to be made for another spare than the one whose place its pod records and does not
// get. It is not while that one stands by where the rank may go, as where money is short for it: it would be the first
// to be chosen again, and the rank be made anew without end.
func (f *facts) mayTake(pod *corev1.Pod, index int) bool {
	if pod == nil {
		return true
	}
	r, _ := rank.ReplacementOf(pod)
	last := f.podOf[r.SpareUID]
	return last == nil || !f.standsBy(last) || !f.AcceptsRank(last.Spec.NodeName, index)
}

// standsBy reports whether a spare could give its place to a rank.
func (f *facts) standsBy(spare *corev1.Pod) bool {
	return active(spare) && f.runs(spare) && f.Accepts(spare.Spec.NodeName)
}

// restartStarting has the ranks of a gang that starts be made anew which have died meanwhile.
func (s *swaps) restartStarting(f *facts, r *roster) {
	for index, pod := range r.core() {
		if pod != nil {
			continue
		}
		if made, again := restartOf(f, index); again {
			s.relief[index] = made
		}
	}
}

// notTaken reports whether the API server has not taken a rank for so long that it has no room.
func (f *facts) notTaken() bool {
	return !f.NotTaken.IsZero() && f.Now.Sub(f.NotTaken) >= f.GangDeadline
}

// narrowerBy returns the widest width in GPUs that has no more ranks than have pods, whichever those are: the API
// server takes a pod for each that goes. It is 0 when there is none.
func narrowerBy(d plan.Demand, ranks []*corev1.Pod) int32 {
	made := len(slices.DeleteFunc(slices.Clone(ranks), func(pod *corev1.Pod) bool { return pod == nil }))
	if d.StepPods == 0 {
		return 0
	}
	for width := d.Pods() - d.StepPods; width >= d.LeastPods; width -= d.StepPods {
		if width <= made {
			return int32(width * d.GPUsPerPod)
		}
	}
	return 0
}

// standBySpares returns the spares that could make room for a rank of their group now, and make room for no other, by
// group and in order of their indexes.
func standBySpares(f *facts, c *cuts, w width, r *roster, claims map[types.UID]*corev1.Pod) map[int][]*corev1.Pod {
	free := map[int][]*corev1.Pod{}
	for index, pod := range r.spares {
		if f.standsBy(pod) && claims[pod.UID] == nil && !c.doom(pod) {
			group := w.shape.Group(rank.Part{Index: index, Spare: true})
			free[group] = append(free[group], pod)
		}
	}
	return free
}

// claimsIn returns the pods that record whose place they take, by the spare's UID, but for those that are elsewhere.
func claimsIn(r *roster) map[types.UID]*corev1.Pod {
	out := map[types.UID]*corev1.Pod{}
	for _, pod := range slices.Concat(r.ranks, r.beyond) {
		if pod == nil {
			continue
		}
		if made, ok := rank.ReplacementOf(pod); ok && made.SpareUID != "" && (!bound(pod) || pod.Spec.NodeName == made.Node) {
			out[made.SpareUID] = pod
		}
	}
	return out
}

// lostRank returns the record of a rank whose pod is gone with its node. Its Lease is open, or was the last that the
// rank has had: it is closed by then where the API server would not take a replacement.
func lostRank(f *facts, index int) (rank.Replacement, bool) {
	for _, lease := range f.Leases {
		node := lease.Node()
		if lease.Spec.RunRef.UID != f.Run.UID || rank.Held(lease) != (rank.Part{Index: index}) {
			continue
		}
		switch {
		case !f.Stands(node):
			return rank.Replacement{Lost: node}, true
		case f.wasEvicted(lease):
			return rank.Replacement{Lost: node, Sign: cmp.Or(signAt(f, index, node), f.wordOfEviction(lease))}, true
		case f.podOf[lease.PodUID()] == nil && f.leftForMaintenance(lease):
			return rank.Replacement{Lost: node, Sign: bySign}, true
		}
	}
	return evictedFrom(f, index)
}

// shortOfRoom reports whether the missing ranks of a Run that runs were refused room or money, at the width that it has
// from now on: of another width the book says nothing yet. A rank that no node accepts has no room.
func shortOfRoom(f *facts, w width) bool {
	refusal := f.Refusal
	return refusal != nil && !refusal.Spare && !refusal.Grow && !refusal.Belated &&
		refusal.Reason != plan.NotYet && w.planned == w.widest()
}

// retryRejected is how long a gang waits before nodes that other scheduling rules rejected are tried again: those
// rules' own causes may pass without an event.
const retryRejected = 5 * time.Second

// patience is how long a rank waits for such nodes: they have been tried again by then.
const patience = 2 * retryRejected

// lostInVain reports whether ranks that were lost wait for nodes for long enough. Where other scheduling rules turned
// nodes down, they are asked once more before the Run gives anything up: their causes may pass without an event, unless
// they follow from what is known. A rank for which nothing is kept was not lost: nobody ends for it, whatever its pod
// was refused before that was known.
func (f *facts) lostInVain(ranks []*corev1.Pod) bool {
	if passes := f.Refusal.Rejected != nil && !f.Refusal.Rejected.Known; passes && f.Now.Sub(f.Refusal.Since) < patience {
		return false
	}
	for index, pod := range ranks {
		if !f.gaveUp(index) && active(pod) && !bound(pod) {
			return true
		}
	}
	return false
}
