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

// denial is what the API server has held against the pods of a gang, for want of quota or against an admission rule.
// Nothing tells when that is over: a gang that waits is tried again after a while, the longer the more often it was in
// vain.
type denial struct {
	// rests says that the gang is not tried for now. It has no pods meanwhile: others may have what is left of a quota.
	rests bool
	// until is until when it rests or, while it is tried, by when its pods are to have been made.
	until time.Time
	tries int
	// quota says that it was for want of quota the last time, which others have, and alone that nothing but the leader had
	// been asked for.
	quota, alone bool
	// reclaimed says that shards have been told to go for it since.
	reclaimed bool
	// since is from when on the API server has not taken a rank that a running gang lacks; zero when it lacks none.
	since time.Time
	// delays is why pods that are to be made have not been so far; empty where nothing is known.
	delays string
	// moves says that a pod has been made since the gang was given its places.
	moves bool
}

// firstDenial is how long a gang is not tried again at first whose pods were not taken; each time after is twice as
// long, mostDenials times. Of a gang whose leader alone is not taken it is a few times only: that costs one request.
const (
	firstDenial = 15 * time.Second
	mostDenials = 5
	fewDenials  = 2
)
