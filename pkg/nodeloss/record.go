package nodeloss

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Record returns the annotation's value that says why and when a node was found to be lost.
func Record(v Verdict, at time.Time) string {
	return fmt.Sprintf("%s %s %s", at.UTC().Format(time.RFC3339Nano), v.Reason, v.Message)
}

// Recorded reports whether a node was found to be lost and when, zero if its record does not say. It counts as lost
// until it is uncordoned or the record is removed, whatever becomes of it meanwhile (R26).
func Recorded(node *corev1.Node) (at time.Time, lost bool) {
	record, marked := node.Annotations[rqv1.AnnotationLost]
	if !marked || !node.Spec.Unschedulable {
		return time.Time{}, false
	}
	stamp, _, _ := strings.Cut(record, " ")
	at, _ = time.Parse(time.RFC3339Nano, stamp) // zero when a person has written it
	return at, true
}

// Told takes a record apart: when and why a node was found to be lost. It is false for one that a person has written
// otherwise.
func Told(record string) (at time.Time, reason Reason, message string, ok bool) {
	stamp, rest, _ := strings.Cut(record, " ")
	why, message, _ := strings.Cut(rest, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return at, Reason(why), message, err == nil
}

// Forgiven reports whether somebody has uncordoned a node that had been lost: its record says nothing any more.
func Forgiven(node *corev1.Node) bool {
	_, marked := node.Annotations[rqv1.AnnotationLost]
	return marked && !node.Spec.Unschedulable
}
