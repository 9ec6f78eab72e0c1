package rank

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// LongestStart is how many times its deadline a gang may take to start of whose pods some are made only once others are
// ready: places that nobody pays for are not kept without end.
const LongestStart = 10

// StartsBy returns by when a gang is to have all of its pods bound that began to start at an instant, by its ranks, nil
// for those without a pod, and by its deadline (I9). Where others make some of the pods only once the first are ready
// (R40), the deadline counts from when these are, or from when a pod was made since, and the gang has up to
// LongestStart of it in all: who waits for what takes its time to begin does not fail to start.
func StartsBy(spec *rqv1.RunSpec, began time.Time, ranks []*corev1.Pod, deadline time.Duration,
	now time.Time) time.Time {
	if !spec.TheirsComeLate() {
		return began.Add(deadline)
	}
	last, waits, begins := began, false, false
	for _, pod := range ranks {
		if pod == nil || pod.DeletionTimestamp != nil || Ended(pod) {
			continue
		}
		ready, since := ReadySince(pod)
		switch {
		case pod.Spec.NodeName == "":
			waits, last = true, later(last, pod.CreationTimestamp.Time)
		case ready:
			last = later(last, since)
		default:
			begins = true
		}
	}
	if begins && !waits { // one that is there and finds no place waits for nobody to be ready
		last = later(last, now)
	}
	if longest := began.Add((LongestStart - 1) * deadline); last.After(longest) {
		last = longest
	}
	return last.Add(deadline)
}

// ReadySince reports whether a pod, if there is one, is ready, and since when it is or is not; zero where that is not
// known.
func ReadySince(pod *corev1.Pod) (ready bool, since time.Time) {
	if pod == nil {
		return false, time.Time{}
	}
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if at < 0 {
		return false, time.Time{}
	}
	c := &pod.Status.Conditions[at]
	return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
