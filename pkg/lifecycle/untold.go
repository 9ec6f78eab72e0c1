package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Word is what a pod of others is told while it waits, in its condition PodScheduled.
type Word struct {
	Pod             *corev1.Pod
	Reason, Message string
}

// Reasons of condition PodScheduled. Autoscalers read Unschedulable, and add nodes for it: others are for what no node
// would mend.
const (
	ReasonNotFunded  = "NotFunded"
	ReasonNotServed  = "NotServed"
	ReasonNotItsTurn = "NotItsTurn"
)

// How much is said, since each word is a write: wordRest is how long a pod is told nothing new for the same reason, as
// the numbers in it move, ReasonRest for any reason, and mostWords how many pods of a group are told something each
// second.
const (
	wordRest   = time.Minute
	ReasonRest = 10 * time.Second
	mostWords  = 100
)

// wordsFor returns what those pods of others are told that never get as far as a cycle of kube-scheduler, which would
// tell them: nobody can pay for their Run, or it fits no node that there is, or the API server does not let all of them
// get their ranks. Of one that runs these are those that came too late. Who was told so and waits for room by now is
// told that. After is when to look again, 0 for never.
func wordsFor(s *situation) (words []Word, after time.Duration) {
	f := s.facts
	r := f.Refusal
	if f.Shape != nil {
		r = f.Shape
	} else if f.Problem != "" && s.phase == rqv1.RunPending {
		r = &plan.Refusal{Reason: plan.NotCreated, Message: f.Problem}
	}
	if !f.theirs() || !s.goesOn() || s.suspends() || r == nil || r.Message == "" ||
		s.phase != rqv1.RunPending && !r.Belated {
		return nil, 0
	}
	t := newTeller(s.roster.ranks, f.Now)
	reason := reasonFor(r)
	for index, pod := range s.roster.ranks {
		if r.Belated && !f.gaveUp(index) || !active(pod) || bound(pod) || !rank.Theirs(pod) || f.leaseOf[pod.UID] != nil {
			continue
		}
		if f.Shape == nil && r.Reason != plan.NotCreated && !r.LacksMoney() && !saidByUs(scheduledOf(pod)) {
			continue
		}
		t.tell(pod, reason, r.Message, wordRest)
	}
	return t.words, t.after
}

// toldByUs reports whether what a pod says is what no cycle tells.
func toldByUs(is corev1.PodCondition) bool {
	return is.Reason == ReasonNotFunded || is.Reason == ReasonNotServed || is.Reason == ReasonNotItsTurn
}

// saidByUs reports whether no cycle has said why a pod waits: none takes it back either.
func saidByUs(is corev1.PodCondition) bool {
	return toldByUs(is) || is.Reason == corev1.PodReasonUnschedulable && !byCycle(is)
}

// byCycle reports whether a scheduling cycle has said why a pod has no node: it says no time of it.
func byCycle(is corev1.PodCondition) bool { return is.LastProbeTime.IsZero() }

// teller decides what the pods of a group are told at an instant, and after how long there is more to say; 0 for never.
type teller struct {
	now   time.Time
	left  int // which may be told something now
	words []Word
	after time.Duration
}

// newTeller returns one for pods, of which some may be nil, that may have been told something just now.
func newTeller(pods []*corev1.Pod, now time.Time) *teller {
	t := &teller{now: now, left: mostWords}
	for _, pod := range pods {
		if pod != nil && now.Sub(scheduledOf(pod).LastProbeTime.Time) < time.Second {
			t.left--
		}
	}
	return t
}

// tell tells a pod something, unless it has been told so or has a place, or is to rest, for so long where the reason is
// the same.
func (t *teller) tell(pod *corev1.Pod, reason, message string, rest time.Duration) {
	is := scheduledOf(pod)
	message = Shortened(message, longestMessage)
	if is.Status == corev1.ConditionTrue || is.Reason == reason && is.Message == message {
		return
	}
	if is.Reason != reason {
		rest = ReasonRest
	}
	switch rest = is.LastProbeTime.Add(rest).Sub(t.now); {
	case rest > 0:
		t.after = Soonest(t.after, rest)
	case t.left <= 0:
		t.after = Soonest(t.after, time.Second)
	default:
		t.left--
		t.words = append(t.words, Word{Pod: pod, Reason: reason, Message: message})
	}
}

// NotServed returns what pods are told of whose group is none that the scheduler could start, for a reason that no node
// would mend (R43), and when to ask again.
func NotServed(pods []*corev1.Pod, why string, now time.Time) ([]Word, time.Duration) {
	t := newTeller(pods, now)
	for _, pod := range pods {
		t.tell(pod, ReasonNotServed, why, wordRest)
	}
	return t.words, t.after
}

// TurnedAway returns what pods are told that are to have no rank, or none yet, each by itself: by asks, its reason and
// why, empty for one that is told nothing. A cycle would say of it that it is Unschedulable, for which autoscalers add
// nodes. It returns also when to ask again.
func TurnedAway(pods []*corev1.Pod, by func(*corev1.Pod) (reason, why string), now time.Time) ([]Word, time.Duration) {
	t := newTeller(pods, now)
	for _, pod := range pods {
		reason, why := by(pod)
		if why != "" {
			t.tell(pod, reason, why, wordRest)
		}
	}
	return t.words, t.after
}

// NotItsTurn returns what pods are told that are held back until their group starts, with which nothing is wrong: what
// a scheduling cycle or NotServed told them before is over, and when to ask again. What was said for the group's Run
// stands until that waits for something else, or is gone for long: a group that is read anew with one pod more would
// have all of its pods come and go for autoscalers. Run is nil where there is none.
func NotItsTurn(pods []*corev1.Pod, run *rqv1.Run, goneForLong bool, now time.Time) ([]Word, time.Duration) {
	t, lacks := newTeller(pods, now), lacksFor(run)
	for _, pod := range pods {
		is := scheduledOf(pod)
		stands := is.Reason == ReasonNotFunded || is.Reason == corev1.PodReasonUnschedulable && !byCycle(is)
		ours := toldByUs(is) || is.Reason == corev1.PodReasonUnschedulable
		over := ours && (!stands || goneForLong || lacks != "" && lacks != is.Reason)
		if is.Status == corev1.ConditionFalse && over {
			t.tell(pod, ReasonNotItsTurn, "waiting for the pod's group to start", wordRest)
		}
	}
	return t.words, t.after
}

// WaitsFor returns the reason of condition PodScheduled for what a Run waits for, as its status says.
func WaitsFor(run *rqv1.Run) string {
	if r := run.Status.Refusal; r != nil {
		return reasonFor(&plan.Refusal{Reason: plan.Reason(r.Reason)})
	}
	return ReasonNotItsTurn
}

// lacksFor returns the reason for what a Run lacks now; empty where there is none, or that is not known of it yet.
func lacksFor(run *rqv1.Run) string {
	switch {
	case run == nil:
		return ""
	case run.Status.Phase == rqv1.RunRunning:
		return GrowsFor(run)
	case run.Status.Refusal != nil:
		return WaitsFor(run)
	}
	return ""
}

// GrowsFor is WaitsFor for what a Run that runs lacks to become wider.
func GrowsFor(run *rqv1.Run) string {
	switch w := run.Status.Width; {
	case w != nil && w.Lacks == rqv1.LacksMoney:
		return ReasonNotFunded
	case w != nil && (w.Lacks == rqv1.LacksGPUs || w.Lacks == rqv1.LacksNodes):
		return corev1.PodReasonUnschedulable
	}
	return ReasonNotItsTurn
}

// reasonFor returns the reason that a refusal is told for.
func reasonFor(r *plan.Refusal) string {
	switch {
	case r.LacksMoney():
		return ReasonNotFunded
	case r.Reason == plan.WrongResource || r.Reason == plan.Unsupported:
		return ReasonNotServed
	case r.AboutPods():
		return ReasonNotItsTurn
	}
	return corev1.PodReasonUnschedulable
}

// scheduledOf returns a pod's condition PodScheduled, an empty one where it has none.
func scheduledOf(pod *corev1.Pod) corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled
	})
	if at < 0 {
		return corev1.PodCondition{}
	}
	return pod.Status.Conditions[at]
}
