package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Waiting is the message of a Run that has not been tried: the default in the API.
const Waiting = "waiting to be placed"

// status returns the status that the Run should have; nil when it has it. It does not count pods while a gang starts or
// waits: none of it has started until all of it has.
func (s *state) status() *rqv1.RunStatus {
	if s.fresh() {
		return nil
	}
	next := s.Run.Status.DeepCopy()
	next.ObservedGeneration = s.Run.Generation
	next.Phase = s.phase
	reason, message := s.story()
	next.Message = message
	next.Width = width(&s.Run.Spec)
	next.Funding = nil
	switch {
	case s.opportunistic():
		next.Width.Allocated = s.allocated()
		s.setReclaimed(next)
	case s.phase == rqv1.RunRunning:
		next.Width.Granted, next.Width.Growing, next.Width.Allocated, next.Width.Pending = s.granted, s.growing, s.allocated(), s.change()
		next.Funding = s.funding()
	}
	s.setConditions(next, reason, message)
	s.setGrace(next)
	s.setRoomKept(next)
	s.setReservation(next)
	if equality.Semantic.DeepEqual(&s.Run.Status, next) {
		return nil
	}
	return next
}

// width returns the widths that a Run may have, and the one that it tends to. An opportunistic one takes whatever there is.
func width(spec *rqv1.RunSpec) *rqv1.RunWidth {
	out := &rqv1.RunWidth{Min: spec.Resources.TotalGPUs, Max: spec.Resources.TotalGPUs, Desired: spec.Desired()}
	if m := spec.Malleable; m != nil {
		out.Min, out.Max = m.MinTotalGPUs, m.MaxTotalGPUs
	}
	if spec.Opportunistic {
		out.Min = 0
	}
	return out
}

// story returns why the Run is where it is, in a word and in a sentence.
func (s *state) story() (reason, message string) {
	switch s.phase {
	case rqv1.RunCompleted:
		if s.Run.Status.Phase == rqv1.RunCompleted && s.Run.Status.Message != "" {
			return "Completed", s.Run.Status.Message
		}
		return "Completed", fmt.Sprintf("all %d pods completed", len(s.core()))
	case rqv1.RunFailed:
		return s.failure()
	case rqv1.RunRunning:
		if s.opportunistic() {
			return s.shards()
		}
		return s.bound()
	}
	switch {
	case s.Shape != nil:
		return string(s.Shape.Reason), s.Shape.Message
	case s.cut != nil:
		return string(reasonOf(s.cut)), s.ended(s.cut)
	case s.requeued():
		return "Requeued", "a lost pod could not be replaced; the Run waits to start again from its checkpoint: " + s.Refusal.Message
	case s.edited():
		return "Edited", "owner, funding or runtime was edited while the Run was starting; it starts again under its new terms"
	case s.overdue():
		return "DeadlineExceeded", fmt.Sprintf("not every pod could be bound within %s; the Run starts again", s.GangDeadline)
	case s.Problem != "":
		return string(plan.NotCreated), s.Problem
	case s.opportunistic():
		return s.shards()
	case s.waitsFor != nil && s.waitsFor.Status.State == rqv1.ReservationActivating:
		return "Activating", s.activating()
	case s.Refusal != nil:
		return string(s.Refusal.Reason), withBrake(s.Refusal.Message, s.Brake)
	case s.Leaving > 0:
		return "PodsLeaving", fmt.Sprintf("has its places: %d pods there are leaving already", s.Leaving)
	}
	// That the Run was cut is said until something else stands in its way.
	if c := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionStarted); c != nil &&
		c.Status == metav1.ConditionFalse && c.Reason == reasonRandomPreempt {
		return c.Reason, c.Message
	}
	return "Waiting", Waiting
}

// failure says what ended the Run: the pod that failed first by index, and how, its maxDuration, or a lost pod. What was
// said once stays.
func (s *state) failure() (reason, message string) {
	if s.Run.Status.Phase == rqv1.RunFailed && s.Run.Status.Message != "" {
		reason = "Failed"
		if finished := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionFinished); finished != nil {
			reason = finished.Reason
		}
		return reason, s.Run.Status.Message
	}
	for _, pod := range s.core() {
		if pod != nil && pod.Status.Phase == corev1.PodFailed && !s.lost(pod) {
			return "Failed", fmt.Sprintf("pod %s failed%s", pod.Name, detail(pod))
		}
	}
	switch {
	case s.expired():
		return "DeadlineExceeded", s.overran()
	case s.cut != nil:
		return string(reasonOf(s.cut)), s.ended(s.cut)
	case s.Refusal != nil:
		return "Failed", "a lost pod could not be replaced and the Run declares no checkpoint: " + s.Refusal.Message
	}
	return "Failed", "a pod failed"
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

// missing returns the number of ranks without a bound pod.
func (s *state) missing() int {
	n := 0
	for _, pod := range s.core() {
		if pod == nil || pod.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

// allocated returns the GPUs of bound active pods that have not ended. Those that are shrunk away hold theirs until they
// are gone (R28).
func (s *state) allocated() int32 {
	gpus := 0
	for _, pod := range slices.Concat(s.pods, s.beyond) {
		if pod != nil && pod.Spec.NodeName != "" && holds(pod) && pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) {
			gpus += s.Demand.GPUsPerPod
		}
	}
	return int32(gpus)
}

// setConditions says whether the Run has started and, once it has ended, how.
func (s *state) setConditions(next *rqv1.RunStatus, reason, message string) {
	condition := metav1.Condition{
		Type: rqv1.ConditionStarted, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: s.Run.Generation,
	}
	switch s.phase {
	case rqv1.RunRunning:
		condition.Status = metav1.ConditionTrue
	case rqv1.RunCompleted, rqv1.RunFailed:
		condition.Type, condition.Status = rqv1.ConditionFinished, metav1.ConditionTrue
	}
	s.setCondition(next, condition)
	s.setOverdraft(next)
	s.setHeldBack(next)
}

// setCondition sets a condition, with the time at which it became so.
func (s *state) setCondition(next *rqv1.RunStatus, condition metav1.Condition) {
	if old := meta.FindStatusCondition(next.Conditions, condition.Type); old == nil || old.Status != condition.Status {
		condition.LastTransitionTime = metav1.NewTime(s.Now)
	}
	meta.SetStatusCondition(&next.Conditions, condition)
}
