package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Notice is what a pod that is cut is told before it ends (R19).
type Notice struct {
	// Reason that the pod's Lease is going to close with, and a sentence that says for whom.
	Reason  rqv1.ClosureReason
	Message string
	// GraceSeconds are what it has to end: its own, as far as that is allowed, and a notice period at least.
	GraceSeconds int64
}

// Values of a condition's reason that outlast the decision that they come from.
const (
	reasonShrink        = string(rqv1.ClosedShrink)
	reasonRandomPreempt = string(rqv1.ClosedRandomPreempt)
	reasonSwapped       = "Swapped"
)

// reasonOf returns the reason that a cut closes Leases with.
func reasonOf(cut *rank.Cut) rqv1.ClosureReason {
	switch cut.Action {
	case rqv1.CutDropSpare:
		return rqv1.ClosedDropSpare
	case rqv1.CutShrink:
		return rqv1.ClosedShrink
	}
	return rqv1.ClosedRandomPreempt
}

// ends reports whether a cut ends all that its Run held.
func ends(cut *rank.Cut) bool { return cut.Action == rqv1.CutLottery }

// ending returns the cut that ends the Run as it runs now: it had started by the activation. Cuts of an earlier start do
// not end a later one.
func (s *state) ending() *rank.Cut {
	for i := range s.Cuts {
		if cut := &s.Cuts[i]; ends(cut) && s.ranBefore(cut.At) {
			return cut
		}
	}
	return nil
}

// ranBefore reports whether the Run runs and had started before an instant. Conditions have whole seconds.
func (s *state) ranBefore(at time.Time) bool {
	started, runs := s.Run.StartedAt()
	return runs && started.Before(at.Truncate(time.Second))
}

// cutOf returns the cut that ends what a Lease holds; nil when none does. What was opened after the activation is not cut.
func (s *state) cutOf(lease *rqv1.Lease) *rank.Cut {
	part := rank.Held(lease)
	for i := range s.Cuts {
		cut := &s.Cuts[i]
		if cut.UID != lease.Spec.RunRef.UID || !lease.Spec.Start.Time.Before(cut.At) {
			continue
		}
		if (cut.Action != rqv1.CutShrink || s.shrinks(cut)) && s.Demand.Cuts(&cut.Cut, part) {
			return cut
		}
	}
	return nil
}

// doomed reports whether a pod goes by a cut, whatever its Run's status says by now: a spare that is dropped, or a pod that
// is left of a Run that was sent back to wait.
func (s *state) doomed(pod *corev1.Pod) bool {
	if lease := s.leases[pod.UID]; lease != nil {
		cut := s.cutOf(lease)
		return cut != nil && (cut.Action == rqv1.CutDropSpare || ends(cut) && s.waits())
	}
	return s.waits() && !holds(pod) && slices.ContainsFunc(s.Cuts, func(cut rank.Cut) bool {
		return ends(&cut) && pod.CreationTimestamp.Time.Before(cut.At.Truncate(time.Second))
	})
}

// waits reports whether the Run's status says that it waits.
func (s *state) waits() bool {
	return s.Run.Status.Phase == rqv1.RunPending || s.Run.Status.Phase == ""
}

// notice returns what a pod is told that is to go; nil when it is not cut, or holds nothing any more.
func (s *state) notice(pod *corev1.Pod) *Notice {
	if pod.Spec.NodeName == "" || !holds(pod) {
		return nil
	}
	cut, lease := s.cut, s.leases[pod.UID]
	if cut == nil && lease != nil {
		cut = s.cutOf(lease)
	}
	switch {
	case s.reclaims(pod):
		return s.noticeOfReclaim(pod)
	case cut != nil:
		return s.noticeOf(pod, reasonOf(cut), purpose(cut))
	case lease != nil && s.narrowed() && !s.has(rank.Held(lease)):
		return s.noticeOf(pod, rqv1.ClosedShrink, fmt.Sprintf("the Run is shrunk to %d GPUs", s.granted))
	}
	return nil
}

func (s *state) noticeOf(pod *corev1.Pod, reason rqv1.ClosureReason, message string) *Notice {
	seconds := wholeSeconds(s.NoticePeriod)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = max(seconds, *own)
	}
	return &Notice{Reason: reason, Message: message, GraceSeconds: min(seconds, s.longestGrace())}
}

// purpose says what is cut, and for whom.
func purpose(cut *rank.Cut) string {
	what := "cut by lottery"
	switch cut.Action {
	case rqv1.CutDropSpare:
		what = "spare dropped"
	case rqv1.CutShrink:
		what = "shrunk"
	}
	return fmt.Sprintf("%s for Run %s (Reservation %s)", what, cut.For, cut.Reservation)
}

// ended says what a cut has brought the Run to, and how to check a draw.
func (s *state) ended(cut *rank.Cut) string {
	text := purpose(cut)
	if s.phase == rqv1.RunPending {
		text += "; it waits to start again from its checkpoint"
	} else {
		text += "; it declares no checkpoint, so it does not start again"
	}
	return text + fmt.Sprintf("; check the draw with kubectl runs explain --verify %s -n %s", cut.Reservation.Name, cut.Reservation.Namespace)
}
