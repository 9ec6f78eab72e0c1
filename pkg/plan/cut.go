package plan

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Cuts reports whether a cut takes a pod of a Run whose full shape this is (R19): a lottery all, dropped spares those
// that it lists, and a shrink or a return what is beyond the width that it leaves.
func (d Demand) Cuts(c *rqv1.Cut, p rank.Part) bool {
	switch c.Action {
	case rqv1.CutDropSpare:
		return p.Spare && slices.Contains(c.Spares, int32(p.Index))
	case rqv1.CutShrink, rqv1.CutReturn:
		return !d.At(int(*c.Width) / d.GPUsPerPod).Has(p)
	}
	return true
}
