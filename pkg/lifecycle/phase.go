package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// phaseOf returns the phase that the pods have brought the Run to. A Run that has ended stays ended.
func phaseOf(t *footing) rqv1.RunPhase {
	switch {
	case t.facts.Run.Ended():
		return t.facts.Run.Status.Phase
	case t.facts.Shape != nil:
		return shapelessPhase(t.facts)
	case t.facts.opportunistic():
		return shardsPhase(t.facts, t.roster.ranks)
	}
	return gangPhase(t)
}

// shapelessPhase returns the phase of a Run that the nodes there are have no room for, however idle: it waits for
// others. A gang that runs has lost all of its ranks by then, or it would have a shape.
func shapelessPhase(f *facts) rqv1.RunPhase {
	switch {
	case !saysRunning(f.Run) || f.opportunistic():
		return rqv1.RunPending
	case failsByTime(f.Run, f.Now):
		return rqv1.RunFailed
	case f.Run.Suspended():
		return rqv1.RunPending
	}
	return phaseAfterLoss(f.Run)
}

// gangPhase returns the phase of a Run that starts with all of its pods or not at all.
func gangPhase(t *footing) rqv1.RunPhase {
	f, ranks := t.facts, t.roster.core()
	if ended := f.groupEnds(ranks); ended != "" {
		return ended
	}
	started, succeeded := 0, 0
	for index, pod := range ranks {
		switch {
		case t.goesWithout(index, pod):
			started++
		case pod == nil || t.cuts.doom(pod):
		case f.failed(pod):
			if !t.restarts.forgives(f, pod) && !f.theirs() {
				return rqv1.RunFailed
			}
		case present(pod) && pod.Status.Phase == corev1.PodSucceeded:
			succeeded++
			started++
		case present(pod) && f.runs(pod):
			started++
		}
	}
	switch {
	case succeeded == len(ranks) && !f.theirs():
		return rqv1.RunCompleted
	case t.restarts.verdict.Failure != nil, failsByTime(f.Run, f.Now),
		t.outcast() != nil && saysRunning(f.Run) && !f.theirs():
		return rqv1.RunFailed
	case t.cuts.final != nil:
		return phaseAfterLoss(f.Run)
	case f.Run.Suspended(), t.timesOut():
		return rqv1.RunPending
	case t.swaps.stuck:
		return phaseAfterLoss(f.Run)
	case saysRunning(f.Run) || started == len(ranks) && f.standBy(t.roster.spares) && !t.edited:
		return rqv1.RunRunning
	}
	return rqv1.RunPending
}

// phaseAfterLoss returns the phase of a Run that cannot go on: Pending again if it declares a checkpoint, or others
// make its pods, and Failed otherwise (R22, R41).
func phaseAfterLoss(run *rqv1.Run) rqv1.RunPhase {
	if run.Spec.Checkpoints() || run.Spec.Theirs() {
		return rqv1.RunPending
	}
	return rqv1.RunFailed
}

// shardsPhase returns the phase that the shards have brought the Run to: it runs while any of them does, and waits
// while none does. That some give way, or are lost, is no failure.
func shardsPhase(f *facts, shards []*corev1.Pod) rqv1.RunPhase {
	succeeded := 0
	for _, pod := range shards {
		switch {
		case pod == nil || f.reclaims(pod):
		case f.failed(pod):
			return rqv1.RunFailed
		case present(pod) && pod.Status.Phase == corev1.PodSucceeded:
			succeeded++
		}
	}
	switch {
	case succeeded == len(shards):
		return rqv1.RunCompleted
	case expired(f.Run, f.Now):
		return rqv1.RunFailed
	case f.Run.Suspended():
		return rqv1.RunPending
	case runningShards(f, shards) > 0:
		return rqv1.RunRunning
	}
	return rqv1.RunPending
}

// runningShards returns the number of shards that run.
func runningShards(f *facts, shards []*corev1.Pod) int {
	n := 0
	for _, pod := range shards {
		if active(pod) && f.runs(pod) && !f.reclaims(pod) {
			n++
		}
	}
	return n
}
