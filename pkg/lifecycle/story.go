package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// Waiting is the message of a Run that has not been tried: the default in the API.
const Waiting = "waiting to be placed"

// storyOf returns why the Run is where it is, in a word and in a sentence.
func storyOf(s *situation) (reason, message string) {
	switch s.phase {
	case rqv1.RunCompleted:
		if s.facts.Run.Status.Phase == rqv1.RunCompleted && s.facts.Run.Status.Message != "" {
			return "Completed", s.facts.Run.Status.Message
		}
		return "Completed", fmt.Sprintf("all %d pods completed", len(s.roster.core()))
	case rqv1.RunFailed:
		return storyOfFailure(s)
	case rqv1.RunRunning:
		if s.facts.opportunistic() {
			return storyOfShards(s.facts, s.roster.ranks)
		}
		return storyOfRunning(s)
	}
	return storyOfPending(s)
}

// storyOfPending says what a Run waits for.
func storyOfPending(s *situation) (reason, message string) {
	f := s.facts
	waits, said := f.Waits(), sentBack(f.Run)
	switch {
	case said != nil && leftOfAttempt(s):
		return said.Reason, said.Message // who comes next knows what they are
	case s.suspends() && s.cuts.final == nil:
		return "Suspended", whileSuspended
	case f.Shape != nil:
		return string(f.Shape.Reason), f.Shape.Message
	case s.cuts.final != nil:
		return string(reasonOf(s.cuts.final)), endedByCut(f.Run, s.cuts.final)
	case s.timesOut():
		return rqv1.ReasonTimedOut, waitsAgain(f)
	case s.requeued():
		return "Requeued", fmt.Sprintf("a lost pod could not be replaced; %s: %s", risk.Afterwards(f.Run), f.whyNotReplaced())
	case s.edited:
		return "Edited", "owner, funding or runtime was edited while the Run was starting; it starts again with the new " +
			"values"
	case s.overdue() && s.unmade() > 0:
		return unboundInTime, storyOfLate(s) + untilRested(s)
	case s.overdue():
		return unboundInTime, storyOfUnbound(s)
	case f.Problem != "":
		return string(plan.NotCreated), f.Problem
	case f.opportunistic():
		return storyOfShards(f, s.roster.ranks)
	case waits != nil && waits.Status.State == rqv1.ReservationActivating:
		return "Activating", activating(f, waits)
	case f.Refusal != nil:
		return string(f.Refusal.Reason), withQueue(withBrake(f.Refusal.Message, f.Brake), f)
	case f.Leaving > 0:
		return "PodsLeaving", "it has its places: " + countOf(f.Leaving, "pod there", "pods there") + " leaving already"
	}
	if said != nil { // that is said until something else stands in its way
		return said.Reason, said.Message
	}
	if s.saysUnmade() {
		return storyOfUnmade(s)
	}
	return storyOfRetry(f.Run)
}

// storyOfUnmade says that pods are missing which others make. It does not say how many: they come one after the other.
func storyOfUnmade(s *situation) (reason, message string) {
	all := len(s.roster.core())
	switch said := saidUnbound(s.facts.Run); {
	case s.starting.IsZero() && said != "":
		return unboundInTime, said + notMadeAgain
	case s.starting.IsZero():
		return "PodsNotMade", fmt.Sprintf("not all of the group's %d pods have been created: it waits for them, and holds "+
			"nothing until then", all)
	}
	return "PodsNotMade", fmt.Sprintf("not all of the group's %d pods have been created: their controller creates some "+
		"once others are bound, or ready, and their places are kept for %s after that, and for %s at most", all,
		s.facts.GangDeadline, rank.LongestStart*s.facts.GangDeadline)
}

// storyOfLate says why a group starts again whose controller has not created all of its pods in time.
func storyOfLate(s *situation) string {
	unmade, all, most := s.unmade(), len(s.roster.core()), s.facts.GangDeadline
	if slices.ContainsFunc(s.roster.core(), func(pod *corev1.Pod) bool {
		ready, _ := rank.ReadySince(pod)
		return active(pod) && bound(pod) && !ready
	}) {
		return fmt.Sprintf("%d of %d pods were not created, and not all of the others were ready within %s; the Run starts "+
			"again", unmade, all, rank.LongestStart*most)
	}
	return fmt.Sprintf("%d of %d pods were not created within %s after the others were ready; the Run starts again",
		unmade, all, most)
}

// storyOfRetry says of a Run that is about to be tried what it was refused for last: it starts, or is told anew, soon.
func storyOfRetry(run *rqv1.Run) (reason, message string) {
	said := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	if run.Status.Refusal == nil || run.Status.Phase != rqv1.RunPending || said == nil ||
		said.ObservedGeneration != run.Generation || said.Reason != run.Status.Refusal.Reason {
		return "Waiting", Waiting
	}
	return said.Reason, run.Status.Message
}

// leftOfAttempt reports whether Leases are open of before a Run was cut, or its time was over, or pods are there of
// before that have ended.
func leftOfAttempt(s *situation) bool {
	f := s.facts
	return slices.ContainsFunc(f.Leases, func(l *rqv1.Lease) bool { return f.preempted(l) || f.timedOut(l) }) ||
		slices.ContainsFunc(s.roster.all(), func(pod *corev1.Pod) bool {
			return present(pod) && !unfinished(pod) && s.cuts.doom(pod)
		})
}

// storyOfFailure says what ended the Run: the pod that failed first by index, and how, its maxDuration, or a lost pod.
// What was said once stays.
func storyOfFailure(s *situation) (reason, message string) {
	run := s.facts.Run
	if run.Status.Phase == rqv1.RunFailed && run.Status.Message != "" {
		reason = "Failed"
		if finished := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionFinished); finished != nil {
			reason = finished.Reason
		}
		return reason, run.Status.Message
	}
	if failure := s.restarts.verdict.Failure; failure != nil {
		return string(failure.Why), failure.String()
	}
	for index, pod := range s.roster.core() {
		if !s.facts.failed(pod) {
			continue
		}
		if late, is := s.facts.lateEnd(pod); is {
			return late.Sign, fmt.Sprintf("rank %d on node %s was %s", index, pod.Spec.NodeName, late.Message)
		}
		return "Failed", fmt.Sprintf("pod %s failed%s", pod.Name, detail(pod))
	}
	outcast := s.outcast()
	switch {
	case failsByTime(run, s.facts.Now):
		return rqv1.ReasonTimedOut, ranOut(run)
	case outcast != nil:
		return "RankTurnedAway", outcast.String()
	case s.cuts.final != nil:
		return string(reasonOf(s.cuts.final)), endedByCut(s.facts.Run, s.cuts.final)
	case s.facts.whyNotReplaced() != "":
		return "Failed", "a lost pod could not be replaced and the Run declares no checkpoint: " + s.facts.whyNotReplaced()
	}
	return "Failed", "a pod failed"
}

// whyNotReplaced says why a rank that was lost has no successor; empty when nothing is known.
func (f *facts) whyNotReplaced() string {
	if f.Refusal == nil || f.notTaken() {
		return f.Problem
	}
	return f.Refusal.Message
}

// whyLate says what keeps ranks that were lost from being replaced for now; empty where nothing is known.
func (f *facts) whyLate() string {
	if f.Problem == "" && f.Refusal != nil && f.Refusal.Awaits {
		return f.Refusal.Message
	}
	return cmp.Or(f.Problem, f.Tried)
}

// detail returns the reason or the exit code of a failed pod.
func detail(pod *corev1.Pod) string {
	if pod.Status.Reason != "" || pod.Status.Message != "" {
		return ": " + strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message)
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf(": container %s exited with code %d", c.Name, t.ExitCode)
		}
	}
	return ""
}

// storyOfRunning says how wide a gang that runs is. That it was shrunk or grew is said until its width changes again or
// a pod is replaced, and that a spare was swapped in, until something else happens.
func storyOfRunning(s *situation) (reason, message string) {
	recorded, granted := grantedIn(s.facts.Run), s.width.granted
	shrinks, grows := recorded > granted, recorded > 0 && recorded < granted
	said := reasonStarted(s.facts.Run)
	ranks := s.roster.core()
	without, swapping := s.facts.missing(ranks), slices.ContainsFunc(ranks, s.facts.swapping)
	has := len(ranks) - without
	forgone, late := s.forgone()
	wants := len(ranks) - min(forgone, unwanted(&s.facts.Run.Spec))
	missing := wants - has
	granted -= int32((len(ranks) - wants) * s.width.shape.GPUsPerPod)
	swapped, restarting, restarted := storyOfSwaps(s), storyOfRestarting(s), storyOfRestarts(s)
	switch {
	case !shrinks && !grows && missing > late && s.facts.theirs() && s.facts.Problem != "":
		return string(plan.NotCreated), storyOfUntaken(s, has, wants, without == forgone)
	case !shrinks && !grows && restarting != "":
		return "Restarting", restarting
	case missing > 0 && without == forgone && late > 0 && s.facts.Refusal != nil && s.facts.Refusal.Belated:
		return "PodsWait", fmt.Sprintf("runs with %d of %d pods: nothing was kept for the others, and those that there are "+
			"wait: %s", has, wants, s.facts.Refusal.Message)
	case missing > 0 && without == forgone && late == 0:
		return "PodsNotMade", fmt.Sprintf("runs with %d of %d pods: the others have not been created, and no places are "+
			"kept for them", has, wants)
	case !shrinks && !grows && missing > 0 && (swapping || said != reasonShrink):
		message := fmt.Sprintf("replacing %d of %d pods", missing, wants)
		if why := s.facts.whyLate(); why != "" {
			message += ": " + why
		}
		return "Replacing", message
	case missing == 0 && wants < len(ranks) && !shrinks && !grows: // it has grown or shrunk before
		return "Started", fmt.Sprintf("bound %d GPUs", granted) + growsNoFurther(s)
	case shrinks || said == reasonShrink && !grows:
		return reasonShrink, fmt.Sprintf("shrunk to %d GPUs", granted) + growsNoFurther(s)
	case grows || said == reasonGrow:
		return reasonGrow, fmt.Sprintf("grew to %d GPUs", granted) + growsNoFurther(s)
	case restarted != "" && swapped == "":
		return reasonRestarted, restarted
	case swapped != "":
		return reasonSwapped, swapped
	}
	return "Started", fmt.Sprintf("bound %d GPUs", granted) + growsNoFurther(s)
}

// growsNoFurther says what the Run lacks to grow to what it desires, as a sentence that goes on; empty where it lacks
// nothing.
func growsNoFurther(s *situation) string {
	desired := desiredBy(&s.facts.Run.Spec)
	switch lacksToGrow(s) {
	case rqv1.LacksMoney:
		return fmt.Sprintf("; short of what Budgets allow to grow to %d", desired)
	case rqv1.LacksGPUs:
		return fmt.Sprintf("; short of free GPUs to grow to %d", desired)
	case rqv1.LacksNodes:
		return fmt.Sprintf("; other scheduling rules turn down the nodes on which it could grow to %d", desired)
	}
	return ""
}

// missing returns the number of ranks without a bound pod that are not done.
func (f *facts) missing(ranks []*corev1.Pod) int {
	n := 0
	for index, pod := range ranks {
		if f.lacks(index, pod) {
			n++
		}
	}
	return n
}

// storyOfUntaken says why pods which others have made, and which a group that runs lacks, get no ranks in it.
func storyOfUntaken(s *situation, has, wants int, forgone bool) string {
	if forgone {
		return fmt.Sprintf("runs with %d of %d pods, and keeps no places for the others: %s", has, wants, s.facts.Problem)
	}
	return fmt.Sprintf("replacing %d of %d pods: %s", wants-has, wants, s.facts.Problem)
}

// lacks reports whether a rank has no bound pod, and is not done, or its pod has failed and no other is to come.
func (f *facts) lacks(index int, pod *corev1.Pod) bool {
	if (f.failed(pod) || hasFailed(pod)) && f.gaveUp(index) {
		return true
	}
	return !bound(pod) && (pod != nil || !f.Completed[index])
}

// recent is how long before the last of them replacements count as one event.
const recent = 10 * time.Second

// storyOfSwaps says which groups have been swapped to spares most recently; empty when none has.
func storyOfSwaps(s *situation) string {
	var last time.Time
	why := ""
	at := map[int]time.Time{}
	for index, pod := range s.roster.ranks {
		if !bound(pod) {
			continue
		}
		r, ok := rank.ReplacementOf(pod)
		if !ok || r.Spare == "" || r.Lost == "" {
			continue
		}
		group, made := s.width.shape.GroupOf(index), pod.CreationTimestamp.Time
		if _, known := at[group]; !known || made.After(at[group]) {
			at[group] = made
		}
		if made.After(last) {
			last, why = made, whyLost(r)
		}
	}
	var groups []string
	for group := range s.width.shape.Groups {
		if made, ok := at[group]; ok && !made.Add(recent).Before(last) {
			groups = append(groups, strconv.Itoa(group))
		}
	}
	switch len(groups) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("group %s swapped to spare %s", groups[0], why)
	}
	return fmt.Sprintf("groups %s swapped to spares %s", strings.Join(groups, ", "), why)
}

// whyLost says what has become of the node with which a rank was lost.
func whyLost(r rank.Replacement) string {
	switch {
	case r.After != "":
		return fmt.Sprintf("after a rank died again on node %s: %s", r.Lost, r.Sign)
	case r.Sign == bySign:
		return fmt.Sprintf("before maintenance of node %s", r.Lost)
	case r.Sign == "":
		return "after node failure"
	}
	return fmt.Sprintf("after node %s ended a rank (%s)", r.Lost, r.Sign)
}

// endedByCut says what a cut has brought the Run to, and how to check a draw.
func endedByCut(run *rqv1.Run, cut *rank.Cut) string {
	after := risk.Afterwards(run)
	if cut.ForRank {
		return fmt.Sprintf("%s; %s", purpose(cut), after)
	}
	return fmt.Sprintf("%s; %s; check the draw with kubectl runs explain --verify %s -n %s", purpose(cut), after,
		cut.Reservation.Name, cut.Reservation.Namespace)
}

// activating says what the Run waits for when its turn has come.
func activating(f *facts, r *rqv1.Reservation) string {
	text := "its turn has come, and it is about to start"
	if f.Leaving > 0 {
		text = "its turn has come: " + countOf(f.Leaving, "pod of another Run", "pods of other Runs") + " leaving"
	}
	text += fmt.Sprintf(" (Reservation %s)", r.Name)
	if len(f.Stuck) > 0 {
		text += "; planned again around " + firstStuck(f.Stuck)
	}
	return text
}

// countOf counts what is in a state.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " is"
	}
	return fmt.Sprintf("%d %s are", n, many)
}

// withQueue adds to why a Run waits why it has no date, if those who are ahead of it may have to do with that. How many
// are is a field of its own: a message that counts them would be told anew whenever one of them starts.
func withQueue(message string, f *facts) string {
	if f.InLine == nil || f.InLine.Ahead == 0 {
		return message
	}
	why := "it has no date yet"
	if f.InLine.None {
		why = "it has no date: no known future event would let it start"
	}
	return fmt.Sprintf("%s; %s; other Runs ahead of it wait for %s", message, why, f.Run.Spec.Resources.GPUType)
}
