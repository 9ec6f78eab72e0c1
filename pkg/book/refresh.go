package book

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// goRound plans the gangs again that wait for pods which should be long gone: what these hold is not going to be free
// (R37).
func (v *activations) goRound(now time.Time) {
	for g := range v.roster.classes.roomy {
		if !now.Before(g.room.until) {
			v.kept.giveUpRoom(g)
		}
	}
	if !v.roster.open {
		return
	}
	v.dropBereft()
	v.dropTaken()
	v.giveUpMusters(now)
	v.retryDenied(now)
	var stuck []types.UID
	for pod, h := range v.seats.waitedFor {
		// else nobody has been told to go yet
		if slices.ContainsFunc(h.awaitedBy, func(g *gang) bool { return g.activation == nil }) &&
			v.departures.overstayed(pod, now) {
			stuck = append(stuck, pod)
		}
	}
	slices.Sort(stuck)
	var held []*gang
	for _, pod := range stuck {
		h := v.seats.held[pod]
		for _, g := range h.awaitedBy {
			if g.activation != nil || g.run == nil {
				continue
			}
			if g.activating() {
				g.stuck = append(g.stuck, v.departures.stuckAmong([]types.UID{pod}, now)...)
			}
			if !slices.Contains(held, g) {
				held = append(held, g)
			}
		}
		if h.shard { // from now on it is in everybody's way
			v.seats.hold(pod, "", 0, func(h *holding) { h.shard, h.stays = false, true })
		}
	}
	slices.SortFunc(held, func(x, y *gang) int { return cmp.Or(x.activatedAt().Compare(y.activatedAt()), byAge(x, y)) })
	places := map[*gang][]resolver.Holding{}
	for _, g := range held {
		places[g] = g.placesOf()
		v.places.unwind(g)
	}
	for _, g := range held {
		lead := g.leader()
		if !g.complete() || lead == nil {
			continue
		}
		if !g.activating() {
			v.waiting.wake(g) // also of a Run that runs, whose ranks are replaced
			continue
		}
		if v.resume(g, lead.pod, now); g.activation != nil && !g.vain() {
			// it is decided anew; what has been freed for it stays its own until then
			v.kept.keepFor(g, places[g], now.Add(v.args.GangDeadline.Duration))
		}
	}
}

// nextRound tells when a pod that gangs wait for should be long gone, or the room lapses that is kept for one that is
// planned again.
func (v *activations) nextRound(e *earliest, now time.Time) {
	for g := range v.roster.classes.roomy {
		e.by(g.room.until)
	}
	for g := range v.cuts.forRanks {
		if g.awaiting == 0 {
			e.by(now)
		}
	}
	for pod, h := range v.seats.waitedFor {
		if slices.ContainsFunc(h.awaitedBy, func(g *gang) bool { return g.activation == nil }) {
			if until, ok := v.departures.goesBy(pod, h, now); ok {
				e.by(until.Add(overstay))
			}
		}
	}
}

// stale returns the Runs of which it is to be worked out next when they start: first those of whom it never was, but
// for each fourth; else, in turn, one that has a date and one that was found to have none.
func (v *activations) stale(now time.Time, most int) []types.UID {
	v.mu.Lock()
	defer v.mu.unlockUnchanged()
	var undated, dated, dateless []*gang
	v.waiting.eachInTurn(func(g *gang, at standing) {
		switch {
		case !v.agenda.outdated(g, at, now):
		case g.filed.dateless != nil:
			dateless = append(dateless, g)
		case g.promise != nil:
			dated = append(dated, g)
		default:
			undated = append(undated, g)
		}
	})
	var runs []types.UID
	for len(runs) < most && len(undated)+len(dated)+len(dateless) > 0 {
		v.turn++
		from, other := &dated, &dateless
		if v.turn/4%2 == 1 {
			from, other = other, from
		}
		if len(*from) == 0 {
			from = other
		}
		if len(undated) > 0 && (v.turn%4 != 0 || len(*from) == 0) {
			from = &undated
		}
		at := longestAgo(*from)
		runs = append(runs, (*from)[at].run.UID)
		*from = slices.Delete(*from, at, at+1)
	}
	return runs
}

// longestAgo returns which gang was looked at longest ago, the first in line of several.
func longestAgo(gangs []*gang) int {
	first := 0
	for i, g := range gangs {
		if cmp.Or(g.looked.Compare(gangs[first].looked), byPlace(g, gangs[first])) < 0 {
			first = i
		}
	}
	return first
}
