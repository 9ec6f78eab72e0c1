package picture

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

// State is how a node stands with jobtree.
type State string

// States of a node, the worst first.
const (
	Lost     State = "Lost"
	HeldBack State = "HeldBack"
	NotReady State = "NotReady"
	Cordoned State = "Cordoned"
	Outage   State = "Outage"
	Suspect  State = "Suspect"
	OK       State = "OK"
)

// States lists them all, the worst first.
var States = []State{Lost, HeldBack, NotReady, Cordoned, Outage, Suspect, OK}

// Standing is the state of a node and what is recorded about it.
type Standing struct {
	State State
	// Since is when the state began; zero where that is not recorded.
	Since time.Time
	// Reason is one word, and Message a sentence; either may be empty.
	Reason, Message string
	// Ready is the status of the node's condition Ready.
	Ready corev1.ConditionStatus
	// Marks are what speaks against the node, the latest last.
	Marks []suspicion.Mark
}

// StandingOf returns how a node stands at an instant. Of several states it is in the worst.
func StandingOf(node *corev1.Node, now time.Time) Standing {
	against := suspicion.Of(node)
	s := Standing{State: OK, Ready: Readiness(node), Marks: against.Marks}
	_, lost := nodeloss.Recorded(node)
	record, held := node.Annotations[rqv1.AnnotationHeldBack]
	switch {
	case lost:
		s.State, record = Lost, node.Annotations[rqv1.AnnotationLost]
	case held:
		s.State = HeldBack
	case s.Ready != corev1.ConditionTrue:
		s.State = NotReady
	case node.Spec.Unschedulable:
		s.State = Cordoned
	case outageOf(node, now) != "":
		s.State, record = Outage, outageOf(node, now)
	case now.Before(against.Until()):
		last := s.Marks[len(s.Marks)-1]
		s.State, s.Since, s.Reason, s.Message = Suspect, last.At, string(last.Why), last.Message
		return s
	}
	if at, reason, message, ok := nodeloss.Told(record); ok {
		s.Since, s.Reason, s.Message = at, string(reason), message
	} else {
		s.Message = record
	}
	return s
}

// TakesWork reports whether a node in this state may be given anything new.
func (s State) TakesWork() bool { return s == OK || s == Suspect }

// outageOf says what is announced of a node that is not over; "" for nothing.
func outageOf(node *corev1.Node, now time.Time) string {
	if w, err := outage.WindowOf(node); err == nil && w.Ahead(now) {
		return w.String()
	}
	if sign, out := outage.SignOf(node); out {
		return "condition " + sign.Condition
	}
	return ""
}

// Readiness is the status of a node's condition Ready; Unknown without one.
func Readiness(node *corev1.Node) corev1.ConditionStatus {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}
