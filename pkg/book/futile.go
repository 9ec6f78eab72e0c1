package book

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// futility counts for how little the pods of a gang that is to start have been made: other scheduling rules turn some
// of them down. What these rules look at may take a moment to be there, such as claims that are made for a pod, so that
// the pods stay for some tries.
type futility struct {
	// refused counts the tries since all pods were there last, and times how often they have gone for it.
	refused, times int
}

// note notes that a gang is refused of which so many pods have been made. Once its pods go, it is not worth another try
// for a while, the longer the more often they have.
func (v *futility) note(made int, refusal *plan.Refusal) {
	if made < 2 || refusal.Rejected == nil || refusal.Rejected.Known {
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

// denial is what the API server has held against the pods of a gang that had its places, for want of quota or against
// an admission rule. Nothing tells when that is over: the gang is tried again after a while, the longer the more often
// it was in vain.
type denial struct {
	until time.Time
	tries int
	// delays is why pods that are to be made have not been so far; empty where nothing is known.
	delays string
	// moves says that a pod has been made since the gang was given its places.
	moves bool
}

// firstDenial is how long a gang is not tried again at first whose pods were not taken; each time after is twice as
// long, mostDenials times.
const (
	firstDenial = 15 * time.Second
	mostDenials = 5
)
