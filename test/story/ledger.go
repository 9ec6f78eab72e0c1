package story

import (
	"fmt"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// line is what a Lease says: of which rank, with which role, on which node, who pays, why it began and why it ended.
func (s *Teller) line(l *rqv1.Lease) string {
	out := fmt.Sprintf("%s %s of %s has %d GPUs of %s, paid by %s, for %s", l.Spec.Slice.Role,
		l.Labels[rqv1.LabelIndex], l.Spec.RunRef.Name, l.GPUs(), s.short(l.Node()), s.payer(l), l.Spec.Reason)
	if l.Status.Closed {
		out += fmt.Sprintf(", closed as %s by %s", l.Status.ClosureReason, l.Status.Cause)
	}
	return out
}

// tale is all that is known of the site, for whoever looks why a story went wrong.
func (s *Teller) tale() string {
	var out strings.Builder
	w := s.World()
	for _, run := range w.Runs {
		fmt.Fprintf(&out, "Run %s is %s: %s\n", run.Name, run.Status.Phase, run.Status.Message)
	}
	for _, l := range w.Leases {
		fmt.Fprintf(&out, "%s %s\n", l.Spec.Start.UTC().Format("15:04:05.000"), s.line(l))
	}
	for _, pod := range w.Pods {
		fmt.Fprintf(&out, "pod %s is %s on %q, told to go by %v\n", pod.Name, pod.Status.Phase, s.short(pod.Spec.NodeName),
			pod.DeletionTimestamp)
	}
	for _, r := range w.Reservations {
		fmt.Fprintf(&out, "Reservation %s is %s: %s\n", r.Name, r.Status.State, r.Status.Reason)
	}
	for _, e := range w.Events {
		fmt.Fprintf(&out, "event of %s %s: %s: %s\n", e.Kind, e.Name, e.Reason, e.Note)
	}
	return out.String()
}
