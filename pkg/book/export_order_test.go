package book

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Ahead returns how many are ahead of a Run that waits.
func (b *Book) Ahead(run types.UID) int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	at, _ := b.waiting.inLine(b.roster.gangs[run])
	return at.ahead
}

// AheadOf returns how many would be ahead of a Run that is submitted now and refused.
func (b *Book) AheadOf(run *rqv1.Run, now time.Time) int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	t := b.trials.begin(run, now)
	at, _ := b.waiting.placeOf(t.gang)
	return at.ahead
}

// OutOfOrder says who is not found in a line where it is, and for whom of another owner more is asked before than there
// would be if each had its own place.
func (b *Book) OutOfOrder() (wrong []string) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	w := b.waiting
	sorted := func(what string, l line) {
		for i := 1; i < len(l); i++ {
			if byPlace(l[i-1], l[i]) >= 0 {
				say("%s: %v is before %v", what, l[i-1].place, l[i].place)
			}
		}
	}
	sorted("all", w.gangs)
	for flavor, l := range w.inFlavor {
		sorted(flavor, *l)
	}
	for _, q := range w.queues {
		sorted("queue", q.line)
	}
	for _, c := range w.crowds {
		sorted("crowd", c.line)
	}
	var own, taken line
	for key, l := range w.order.lines {
		if !slices.IsSortedFunc(l.gangs, byOwnPlace) {
			say("the line of %v is out of order", key)
		}
		for _, g := range l.gangs {
			if !g.queued.in || g.queued.line != key || g.run == nil {
				say("%v is not in the line of %v", g.own, key)
			}
		}
		own, taken = append(own, l.gangs...), append(taken, l.gangs...)
	}
	slices.SortFunc(own, byOwnPlace)
	slices.SortFunc(taken, byPlace)
	for _, g := range own {
		before := func(l line, first func(x, y *gang) int) (gpus int) {
			for _, other := range l {
				if first(other, g) < 0 && other.queued.line.owner != g.queued.line.owner {
					gpus += other.queued.waiting.GPUs
				}
			}
			return gpus
		}
		if before(taken, byPlace) > before(own, byOwnPlace) && g.place == g.own {
			say("before %v, which has its own place, %d GPUs are asked for by others, and %d by their own places", g.own,
				before(taken, byPlace), before(own, byOwnPlace))
		}
	}
	return wrong
}
