package book

import "github.com/davidlangworthy/jobtree/pkg/plan"

// futility counts for how little the pods of a gang that is to start have been made: other scheduling rules turn some
// of them down. What these rules look at may take a moment to be there, such as claims that are made for a pod, so that
// the pods stay for some tries.
type futility struct {
	// refused counts the tries since all pods were there last, and times how often they have gone for it.
	refused, times int
}

// note notes that a gang is refused. Once its pods go, it is not worth another try for a while, the longer the more
// often they have.
func (v *futility) note(g *gang, refusal *plan.Refusal) {
	made := g.active.present + g.spares.present - g.standIns
	if made < 2 || g.started() || g.opportunistic() || refusal.Rejected == nil || refusal.Rejected.Known {
		return
	}
	v.refused++
	if v.refused == triesOfPods {
		v.times++
	}
	if v.refused >= triesOfPods {
		refusal.Rejected.Rest = max(refusal.Rejected.Rest, firstDenial<<min(v.times-1, mostDenials))
	}
}

// keeps reports whether the pods of a gang that is refused stay for another try.
func (v *futility) keeps(refusal *plan.Refusal) bool {
	return refusal.Passes() && v.refused < triesOfPods
}

// triesOfPods is how often the pods of a gang are tried that other rules turn down before they go.
const triesOfPods = 3
