package budget

import (
	"fmt"
	"strings"
)

// What is tried at most when limits are raised: so many envelopes, and so many limits over each, each kind there is
// twice.
const (
	envelopesRaised = 16
	limitsRaised    = 12
)

// raise raises limits over the first envelope for which that is enough.
func (v *advisor) raise() []Change {
	for i := range v.cover.Offers[:min(len(v.cover.Offers), envelopesRaised)] {
		if v.cover.Offers[i].Refusal != "" {
			continue
		}
		if edits := v.cover.raise(i, v.wanted); len(edits) > 0 {
			return []Change{{"raise " + strings.Join(edits, ", and "), v.wanted}}
		}
	}
	return nil
}

// raising is how far one limit over an envelope is to be raised, in GPUs or in GPU-hours.
type raising struct {
	limit    int
	from, to int64
}

// raise raises one limit over an offer after the other, until so many GPUs are paid for, and says in words by how much.
// It returns none if that is not enough. It leaves the cover as it was.
func (c *Cover) raise(offer, wanted int) (edits []string) {
	before := make([]int64, len(c.limits))
	for i := range c.limits {
		before[i] = c.limits[i].left
	}
	defer func() {
		for i := range c.limits {
			c.limits[i].left = before[i]
		}
	}()
	var raised []raising
	for range limitsRaised {
		short := wanted - c.Payable()
		if short <= 0 {
			for _, r := range raised {
				edits = append(edits, fmt.Sprintf("%s of Budget %s from %d to %d", c.field(offer, r.limit),
					c.Offers[offer].Key.Budget, r.from, r.to))
			}
			return edits
		}
		l, found := c.binding(offer, wanted)
		if !found {
			return nil
		}
		raised = c.lift(raised, l, short)
	}
	return nil
}

// binding returns the limit that keeps an offer from paying for more of so many GPUs; false when that is not one of its
// Budget.
func (c *Cover) binding(offer, wanted int) (int, bool) {
	_, room := c.takes(wanted / c.ask.GPUsPerPod)
	tightest := -1
	for _, l := range c.Offers[offer].limits {
		if tightest < 0 || room[l] < room[tightest] {
			tightest = l
		}
	}
	return tightest, tightest >= 0 && c.limits[tightest].Kind != MaxBorrow
}

// lift raises a limit by what so many GPUs take from it, and by its overdraft; what a pod is too large for is used.
func (c *Cover) lift(raised []raising, at, gpus int) []raising {
	l := &c.limits[at]
	by := int64(gpus/c.ask.GPUsPerPod)*l.active - unused(l.left, l.active)
	unit := int64(1)
	if l.Hours() {
		unit = int64(GPUHour)
		by = (max(by, 1) + unit - 1) / unit * unit
	}
	l.left += by
	for i := range raised {
		if raised[i].limit == at {
			raised[i].to += by / unit
			return raised
		}
	}
	return append(raised, raising{at, l.Max / unit, (l.Max + by) / unit})
}

// unused is what is left of a limit when as many pods as fit have taken their part; the whole of it when it is
// overdrawn.
func unused(left, pod int64) int64 {
	if left < 0 {
		return left
	}
	return left % pod
}

// field names a limit over an offer in the spec of its Budget.
func (c *Cover) field(offer, at int) string {
	l := &c.limits[at]
	switch {
	case l.Cap != "" && l.Hours():
		return "aggregateCaps[" + l.Cap + "].maxGPUHours"
	case l.Cap != "":
		return "aggregateCaps[" + l.Cap + "].maxConcurrency"
	}
	return "envelopes[" + c.Offers[offer].Key.Envelope + "]." + string(l.Kind)
}
