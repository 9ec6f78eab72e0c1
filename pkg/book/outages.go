package book

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// announcesAsBefore reports whether a node announces what it announced before, or nothing still, by its annotations and
// its conditions.
func announcesAsBefore(old, node *corev1.Node) bool {
	before, saidBefore := outage.SignOf(old)
	now, says := outage.SignOf(node)
	return saidBefore == says && before.Condition == now.Condition &&
		old.Annotations[rqv1.AnnotationMaintenanceStart] == node.Annotations[rqv1.AnnotationMaintenanceStart] &&
		old.Annotations[rqv1.AnnotationMaintenanceEnd] == node.Annotations[rqv1.AnnotationMaintenanceEnd]
}

// Misannounced is a node whose annotations announce no outage that could be read, and why.
type Misannounced struct{ Node, Problem string }

// MisannouncedNodes returns the nodes whose announcement of an outage counts for nothing, by name.
func (b *Book) MisannouncedNodes() (out []Misannounced) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	for name, node := range b.nodes.byName {
		if _, err := outage.WindowOf(node); err != nil {
			out = append(out, Misannounced{name, err.Error()})
		}
	}
	slices.SortFunc(out, func(x, y Misannounced) int { return cmp.Compare(x.Node, y.Node) })
	return out
}

// nextReturn tells when the next outage ends after an instant.
func (t *nodeTable) nextReturn(e *earliest, after time.Time) {
	for _, w := range t.fleet.Planned() {
		if w.End.After(after) {
			e.by(w.End)
		}
	}
}

// returned returns the nodes whose outages have ended after an instant, by another.
func (t *nodeTable) returned(after, by time.Time) map[string]bool {
	out := map[string]bool{}
	for name, w := range t.fleet.Planned() {
		if w.End.After(after) && w.Over(by) {
			out[name] = true
		}
	}
	return out
}

// shutOut adds to the nodes that a gang's pods may not use those of which an outage is planned before it has ended.
func (t *nodeTable) shutOut(g *gang, rejected func(node string) bool, now time.Time) func(node string) bool {
	if !t.fleet.AnyPlanned() {
		return rejected
	}
	until, leaves := g.lastsUntil(now), g.leavesBefore()
	return func(node string) bool {
		return t.fleet.Outage(node).ShutsMovable(now, until, leaves) || rejected != nil && rejected(node)
	}
}
