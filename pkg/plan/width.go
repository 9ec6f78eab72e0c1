package plan

import (
	"slices"
	"sort"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// At returns the shape of the same Run with so many active pods: with groups, fewer or more whole groups; without, one
// group of another size. Spares of a group stay as they are, and a group that is not there has none. pods is a width
// that the Run may have. One whose size is not known has no pods, nor others at any width.
func (d Demand) At(pods int) Demand {
	switch {
	case !d.Confined:
		d.PodsPerGroup = pods
	case d.PodsPerGroup > 0:
		d.Groups = pods / d.PodsPerGroup
	}
	return d
}

// Least returns the shape of the Run at its least width: for a fixed Run, its only one (R16).
func (d Demand) Least() Demand { return d.At(d.LeastPods) }

// Has reports whether a pod takes part at the width.
func (d Demand) Has(p rank.Part) bool {
	if p.Spare {
		return p.Index < d.Spares()
	}
	return p.Index < d.Pods()
}

// Within returns those of some pods that take part at the width.
func (d Demand) Within(missing []Missing) []Missing {
	return slices.DeleteFunc(slices.Clone(missing), func(m Missing) bool { return !d.Has(m.Part) })
}

// Atop returns the narrowest width with room for so many active pods, up to the Run's total, in pods.
func (d Demand) Atop(pods int) int {
	width := d.LeastPods
	if over := pods - width; over > 0 && d.StepPods > 0 {
		width += (over + d.StepPods - 1) / d.StepPods * d.StepPods
	}
	return min(width, d.Pods())
}

// Holding returns the shape of the Run at the widest width, up to its total, at which it holds at most so many GPUs,
// spares and all; at the least width that has room for so many active pods if that is wider, and at its least width if
// none will do.
func (d Demand) Holding(gpus, pods int) Demand {
	if d.HeldGPUs() <= gpus || d.StepPods == 0 {
		return d
	}
	steps := (d.Pods() - d.LeastPods) / d.StepPods
	at := func(step int) int { return d.LeastPods + step*d.StepPods }
	beyond := sort.Search(steps, func(step int) bool { return d.At(at(step+1)).HeldGPUs() > gpus })
	return d.At(max(at(beyond), d.Atop(pods)))
}

// Widest returns the widest width from least to the Run's total, by steps, that fits, and what fits returned for it
// (R16). Widths are in pods, and least is one of the Run's. The total is tried first and least second: if least does
// not fit either, none does and its refusal is returned. Between the two a width is taken to fit if a wider one does.
// Widths above most, from which on none fits, are not tried.
func (d Demand) Widest(least, most int,
	fits func(width int) ([]Assignment, *Refusal)) (width int, found []Assignment, refusal *Refusal) {
	if total := d.Pods(); total <= most || total == least {
		found, refusal = fits(total)
		if refusal == nil || total == least {
			return total, found, refusal
		}
	}
	found, refusal = fits(least)
	if refusal != nil {
		return least, nil, refusal
	}
	low, high := 0, (min(d.Pods()-d.StepPods, most)-least)/d.StepPods // in steps above least; low fits
	for low < high {
		middle := (low + high + 1) / 2
		if wider, short := fits(least + middle*d.StepPods); short == nil {
			low, found = middle, wider
		} else {
			high = middle - 1
		}
	}
	return least + low*d.StepPods, found, nil
}
