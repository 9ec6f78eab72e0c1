package book

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// lastsUntil returns when a Run's maxDuration ends what opens at an instant: what joins a Run that runs, as a replacement, a spare
// or a cohort, ends with it. It is zero for a Run without one.
func (g *gang) lastsUntil(now time.Time) time.Time {
	end, _ := g.end(now)
	return end
}

// admittedBefore returns when what opens at an instant was admitted (R8) if that was before: a replacement when its Run was. It is
// zero for what is admitted as it opens, as a start or a cohort.
func (m *member) admittedBefore(now time.Time) time.Time {
	if at, ok := m.gang.startedAt(); ok && at.Before(now) && !m.joins() {
		return at
	}
	return time.Time{}
}

// claim returns what a gang may claim to be paid for. One that runs asks for no longer than it may still run.
func (b *Book) claim(g *gang, kept plan.Kept) plan.Claim {
	c := plan.ClaimOf(g.run)
	c.Kept = kept
	if at, ok := g.startedAt(); ok {
		c.Until = g.run.Spec.Until(at)
	}
	return c
}

// replans reports whether an edit of a Run changes who pays for it or for how long, so that what was planned before does not
// hold any more. The API admits that only while the Run is Pending.
func replans(was, is *rqv1.Run) bool {
	return was.Spec.Owner != is.Spec.Owner || !equality.Semantic.DeepEqual(was.Spec.Funding, is.Spec.Funding) ||
		!equality.Semantic.DeepEqual(was.Spec.Runtime, is.Spec.Runtime)
}
