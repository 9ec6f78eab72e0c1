package lifecycle

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// width is how wide the Run may be, in GPUs.
type width struct {
	// granted is what the Run may have, and growing what a cohort grows it to, 0 when none does.
	granted, growing int32
	// planned is the width that the book plans the Run at.
	planned int32
	// kept is the Run's shape without the cohort, and shape its shape with it.
	kept, shape plan.Demand
}

// widthOf works out how wide the Run may be: one that runs as wide as its status grants, as far as the Run desires it
// (R24) and its cuts leave it; any other as wide as it is planned. A Run without a shape has no width.
func widthOf(f *facts, c *cuts) width {
	if f.Shape != nil {
		return width{}
	}
	planned := int32(f.Demand.GPUs())
	w := width{planned: planned, granted: planned, kept: f.Demand, shape: f.Demand}
	if f.opportunistic() || !saysRunning(f.Run) {
		return w
	}
	granted := planned
	if recorded := grantedIn(f.Run); recorded > 0 {
		granted = recorded
	}
	granted = min(granted, f.Run.Spec.Desired(), c.left)
	return w.resized(granted, growthFrom(f, c, granted))
}

// growthFrom returns the width that the Run is to grow to from a width: the one under way or, when none is, the one
// decided on. It returns 0 when there is none, the Run does not desire it, or it is being shrunk.
func growthFrom(f *facts, c *cuts, granted int32) int32 {
	to := growingIn(f.Run)
	if to == 0 {
		to = f.GrowTo
		if f.theirs() && int(to-granted) > len(f.offers())*f.Demand.GPUsPerPod {
			return 0 // others have not made the pods
		}
	}
	if to <= granted || to > f.Run.Spec.Desired() || to > c.left || granted < grantedIn(f.Run) {
		return 0
	}
	return to
}

// resized returns the same Run's width when it has other GPUs.
func (w width) resized(granted, growing int32) width {
	w.granted, w.growing = granted, growing
	w.kept = w.shape.At(int(granted) / w.shape.GPUsPerPod)
	w.shape = w.shape.At(int(w.widest()) / w.shape.GPUsPerPod)
	return w
}

// widest returns the width in GPUs that the Run has or is growing to.
func (w width) widest() int32 { return max(w.granted, w.growing) }

// had reports whether the Run has had a part by its status, at the width that it was granted or in the cohort that it
// grows by. One that it is only going to grow by may be of before it was shrunk.
func (w width) had(run *rqv1.Run, part rank.Part) bool {
	said := max(grantedIn(run), growingIn(run))
	return said == 0 || w.shape.At(int(said)/w.shape.GPUsPerPod).Has(part)
}

// recorded reports whether the Run's status says how wide it is: only then do pods beyond that go.
func (w width) recorded(run *rqv1.Run) bool {
	return saysRunning(run) && grantedIn(run) == w.granted && growingIn(run) == w.growing
}
