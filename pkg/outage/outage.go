// Package outage reads from a Node what is planned for it (R35). It is pure: there is no clock in it.
package outage

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Window is when a node is out of service by plan: from Start until End, or without an end that is known if End is
// zero. The zero Window is none.
type Window struct{ Start, End time.Time }

// Announced reports whether there is a window.
func (w Window) Announced() bool { return w != Window{} }

// Over reports whether a window has ended by an instant.
func (w Window) Over(now time.Time) bool { return !w.End.IsZero() && !now.Before(w.End) }

// Ahead reports whether a window is there and has not ended by an instant.
func (w Window) Ahead(now time.Time) bool { return w.Announced() && !w.Over(now) }

// Shuts reports whether a window keeps off its node what would be there from an instant until another, or for no one
// knows how long if that is zero: whatever is not gone when the window starts.
func (w Window) Shuts(from, until time.Time) bool {
	return w.Ahead(from) && (until.IsZero() || until.After(w.Start))
}

// ShutsMovable is Shuts for who can be moved (R35), and is asked to leave no sooner than some time before a window
// starts: it may be there until then.
func (w Window) ShutsMovable(from, until time.Time, leaves time.Duration) bool {
	return w.Shuts(from, until) && (leaves <= 0 || w.Start.Sub(from) <= leaves)
}

// longestLead bounds how long before the last instant a rank may leave that has just been saved.
const longestLead = 30 * time.Minute

// LeaveBy returns when who is on the node leaves it for the window, at the latest: two notice periods before it starts,
// so that there is time to be gone.
func (w Window) LeaveBy(notice time.Duration) time.Time { return w.Start.Add(-2 * notice) }

// LeaveFrom returns from when on a rank leaves it as soon as its work has been saved.
func (w Window) LeaveFrom(notice, interval time.Duration) time.Time {
	return w.Start.Add(-Lead(notice, interval))
}

// Lead is how long before a window starts LeaveFrom is: one checkpoint interval of a rank's Run before LeaveBy, so that
// there is a save in between, half an hour at most; two notice periods for a Run that declares none.
func Lead(notice, interval time.Duration) time.Duration {
	if interval <= 0 {
		interval = 2 * notice
	}
	return 2*notice + min(interval, longestLead)
}

// String is the window in words.
func (w Window) String() string {
	from := "maintenance from " + w.Start.UTC().Format(time.RFC3339)
	if w.End.IsZero() {
		return from + " on"
	}
	return from + " to " + w.End.UTC().Format(time.RFC3339)
}

// WindowOf returns the window that a Node is annotated with. An error says what is wrong with the annotations, which
// count for nothing then.
func WindowOf(node *corev1.Node) (Window, error) {
	from, starts := node.Annotations[rqv1.AnnotationMaintenanceStart]
	to, ends := node.Annotations[rqv1.AnnotationMaintenanceEnd]
	if !starts && !ends {
		return Window{}, nil
	}
	if !starts {
		return Window{}, fmt.Errorf("annotation %s says when maintenance ends, but nothing says when it starts: set %s too",
			rqv1.AnnotationMaintenanceEnd, rqv1.AnnotationMaintenanceStart)
	}
	start, err := parse(rqv1.AnnotationMaintenanceStart, from)
	if err != nil || !ends {
		return Window{Start: start}, err
	}
	end, err := parse(rqv1.AnnotationMaintenanceEnd, to)
	if err != nil {
		return Window{}, err
	}
	if !end.After(start) {
		return Window{}, fmt.Errorf("annotation %s is %s, which is not after %s in %s: set a later end",
			rqv1.AnnotationMaintenanceEnd, to, from, rqv1.AnnotationMaintenanceStart)
	}
	return Window{start, end}, nil
}

// shown is how many bytes of a value that is no time are repeated.
const shown = 64

func parse(annotation, value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s is %.*q, which is not a time: write it as 2030-01-02T15:00:00Z (RFC "+
			"3339)",
			annotation, shown, value)
	}
	return at.UTC(), nil
}

// Sign is a condition of a node that tells of an outage without a date.
type Sign struct {
	// Condition is its type, and Message what it says itself.
	Condition, Message string
	// Drains says that it asks for the node to be emptied, as a cordon does.
	Drains bool
}

// signs are the conditions that mean, when they are True, that no new rank comes to the node. The first that a node has
// counts.
var signs = []struct {
	condition corev1.NodeConditionType
	drains    bool
}{
	{corev1.NodeDrainInProgress, true},                 // Kubernetes: an administrator is emptying the node
	{corev1.NodeMaintenanceInProgress, false},          // Kubernetes: it is being worked on
	{corev1.NodeMaintenancePlanned, false},             // Kubernetes: it is going to be worked on
	{corev1.NodeDrained, false},                        // Kubernetes: it has been emptied
	{corev1.NodeGracefulNodeShutdownInProgress, false}, // Kubernetes: it is shutting down
	{"CSPMaintenance", false},                          // NVSentinel: its cloud provider has announced maintenance
}

// Conditions are the types of those conditions.
func Conditions() []string {
	out := make([]string, len(signs))
	for i := range signs {
		out[i] = string(signs[i].condition)
	}
	return out
}

// SignOf returns the sign of an outage without a date that a Node shows; false when it shows none.
func SignOf(node *corev1.Node) (Sign, bool) {
	for _, s := range signs {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == s.condition && c.Status == corev1.ConditionTrue {
				return Sign{Condition: string(c.Type), Message: c.Message, Drains: s.drains}, true
			}
		}
	}
	return Sign{}, false
}

// Drains reports whether it is asked that a node be emptied: it is cordoned, or says that it is being drained.
func Drains(node *corev1.Node) bool {
	sign, _ := SignOf(node)
	return node.Spec.Unschedulable || sign.Drains
}
