package book

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// departures is what is on its way out, and by when it is to be free.
type departures struct {
	args   *config.Args
	nodes  *nodeTable
	roster *roster
	seats  *seating
	kept   *keptRooms
}

// graceOf returns how long a pod may take to end: what the API server has set in it, as far as it is given so much
// (R37).
func (d *departures) graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		longest := max(d.args.MaxGracePeriod.Duration, d.args.NoticePeriod.Duration)
		return time.Duration(min(*s, int64(longest/time.Second))) * time.Second
	}
	return 0
}

// graceOfAll returns how long the pods of a gang may take to end that hold anything.
func (d *departures) graceOfAll(g *gang) time.Duration {
	longest := time.Duration(0)
	for m := range g.all() {
		if m.placed() {
			longest = max(longest, d.graceOf(m.pod))
		}
	}
	return longest
}

// goesBy returns until when a pod that a gang waits for may stay, or what is kept of one that is gone. One that has not
// been told yet is about to be: it counts from when that was first seen. It returns false for a Lease whose pod is
// gone, which this process closes itself.
func (d *departures) goesBy(pod types.UID, h *holding, now time.Time) (time.Time, bool) {
	if told := d.seats.toldToGo(pod); !told.IsZero() {
		return told, true
	}
	stays, m := d.args.NoticePeriod.Duration, d.roster.members[pod]
	switch {
	case m != nil && m.stage != finished:
		stays = max(stays, d.graceOf(m.pod))
	case !h.vacant || h.leased:
		return time.Time{}, false
	}
	if h.asked.IsZero() {
		h.asked = now
	}
	return h.asked.Add(stays), true
}

// overstayed reports whether a pod that others wait for should be long gone.
func (d *departures) overstayed(pod types.UID, now time.Time) bool {
	h := d.seats.held[pod]
	if h == nil {
		return false
	}
	until, ok := d.goesBy(pod, h, now)
	return ok && !now.Before(until.Add(overstay))
}

// stuckNow returns the pods that have been told to go and should be long gone, in any order.
func (d *departures) stuckNow(now time.Time) []Stuck {
	var out []Stuck
	for _, h := range d.seats.leavers {
		if !h.until.IsZero() && !now.Before(h.until.Add(overstay)) {
			out = append(out, Stuck{Node: h.node, Until: h.until})
		}
	}
	return out
}

// stuckAmong returns those of some pods that should be long gone, by name.
func (d *departures) stuckAmong(pods []types.UID, now time.Time) []Stuck {
	var out []Stuck
	for _, pod := range pods {
		m := d.roster.members[pod]
		if m == nil || !d.overstayed(pod, now) {
			continue
		}
		until, _ := d.goesBy(pod, d.seats.held[pod], now)
		out = append(out, Stuck{Pod: keyOf(m.pod), Node: d.seats.held[pod].node, Until: until, uid: pod})
	}
	slices.SortFunc(out, func(x, y Stuck) int { return cmp.Compare(x.Pod.String(), y.Pod.String()) })
	return out
}

// ending reports whether a Lease is about to be closed, and its GPUs are for others then.
func (d *departures) ending(l *lease, now time.Time) bool {
	m, g := d.roster.members[l.pod], d.roster.gangs[types.UID(l.charge.Run)]
	switch h := d.seats.held[l.pod]; {
	case h != nil && (h.vacant || h.shard), g != nil && g.keepsRoom() && d.nodes.stands(l.node):
		return false
	case m == nil, m.stage == finished, m.outgoing(), g == nil, g.run == nil:
		return true
	}
	end, bounded := g.endsAt(now)
	return g.over() || g.former(l) || bounded && !end.After(now)
}

// untilOf returns until when what a Lease holds, which is about to be closed, may stay: as the API tells, or for as
// long as its pod may take from when that was first seen.
func (d *departures) untilOf(l *lease, now time.Time) time.Time {
	if told := d.seats.toldToGo(l.pod); !told.IsZero() {
		return told
	}
	m := d.roster.members[l.pod]
	if ended := m == nil || m.stage == finished; l.seen.at.IsZero() || l.seen.ended != ended {
		l.seen = sighting{now, ended}
	}
	switch {
	case l.seen.ended:
		return l.seen.at
	case m.doomed():
		return l.seen.at.Add(max(d.graceOf(m.pod), d.args.NoticePeriod.Duration))
	}
	return l.seen.at.Add(d.graceOf(m.pod))
}

// departures returns what is on its way out, by when it is free: what pods hold that have been told to go or that are
// about to be, and Leases that are about to be closed. What is there although its time is long over is nobody's hope.
func (d *departures) departures(now time.Time) []forecast.Release {
	byTime := map[int64]*forecast.Release{}
	add := func(until time.Time, held resolver.Holding) *forecast.Release {
		at, known := freeAt(until, now)
		if !known {
			return nil
		}
		r := byTime[at.UnixNano()]
		if r == nil {
			r = &forecast.Release{At: at, Leaving: !at.After(now.Add(d.args.MaxGracePeriod.Duration))}
			byTime[at.UnixNano()] = r
		}
		r.Holds = append(r.Holds, held)
		return r
	}
	for name, l := range d.seats.leases {
		if !d.ending(l, now) {
			l.seen = sighting{}
			continue
		}
		if r := add(d.untilOf(l, now), d.seats.heldBy(l)); r != nil {
			r.Leases = append(r.Leases, name.String())
		}
	}
	for pod, h := range d.seats.leavers {
		if !h.until.IsZero() && !h.leased && !h.shard && !h.vacant && d.roster.members[pod] == nil {
			add(h.until, h.all()) // another workload's
		}
	}
	out := make([]forecast.Release, 0, len(byTime))
	for _, r := range byTime {
		slices.Sort(r.Leases)
		out = append(out, *r)
	}
	return out
}

// leavingOn returns the pods on some nodes whose GPUs are about to be free for others: those that have been told to go
// or whose Leases are about to be closed, but for what hangs.
func (d *departures) leavingOn(nodes map[string]bool, now time.Time) []types.UID {
	var out []types.UID
	for _, l := range d.seats.leases {
		if !nodes[l.node] || d.seats.held[l.pod] == nil || !d.ending(l, now) {
			continue
		}
		if _, known := freeAt(d.untilOf(l, now), now); known {
			d.seats.held[l.pod].asked = l.seen.at // as long as it has not been told
			out = append(out, l.pod)
		}
	}
	for pod, h := range d.seats.leavers {
		if _, known := freeAt(h.until, now); nodes[h.node] && known && !h.leased && !h.shard && !h.vacant &&
			d.roster.members[pod] == nil {
			out = append(out, pod)
		}
	}
	slices.Sort(out)
	return out
}

// releaseOf returns what a Run gives back when it ends, without what it has given up by then (forgone).
func (d *departures) releaseOf(g *gang, at time.Time) forecast.Release {
	r := forecast.Release{At: at, Run: nameOf(g.run)}
	for m := range g.all() {
		if m.placed() && !m.outgoing() {
			r.Holds = append(r.Holds, g.holding(m))
			r.Leases = append(r.Leases, d.seats.leaseOf(m.pod).String())
		}
	}
	for _, k := range d.seats.keepings(g) {
		if lapse, lapses := g.lapsesAt(k.index); !lapses || lapse.After(at) {
			k.giveBack(&r)
		}
	}
	return r
}

// forgone returns what a Run gives back that goes on without ranks whose pods others do not make in time. It is not on
// its way out, since most come: who waits would be put off again and again where pods are lost and made in turns.
func (d *departures) forgone(g *gang, now time.Time) (out []forecast.Release) {
	if len(g.lapses) == 0 {
		return nil
	}
	kept := d.seats.keepings(g)
	for _, index := range slices.Sorted(maps.Keys(g.lapses)) {
		at, _ := g.lapsesAt(index)
		r := forecast.Release{At: latest(at, now.Add(soon)), Run: nameOf(g.run), Kept: true}
		for _, k := range kept {
			if k.index == index {
				k.giveBack(&r)
			}
		}
		if len(r.Leases) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// giveBack adds it to what a Run gives back.
func (k *keeping) giveBack(r *forecast.Release) {
	r.Leases = append(r.Leases, k.charge)
	if k.room != nil {
		r.Holds = append(r.Holds, k.room.all())
	}
}

// lapses returns what Runs that were requeued give back when their time is over, unless they start before: their money
// soon after their room. While old pods end it is told by what these may take at most, and is about what they hold as
// well.
func (d *departures) lapses(g *gang, now time.Time) *forecast.Release {
	if len(g.requeue.places) == 0 && !g.underWay() || !g.keepsMoney() || g.opportunistic() {
		return nil
	}
	over, _ := d.kept.keptUntil(g)
	r := &forecast.Release{At: over}
	for _, m := range d.kept.oldPods(g, now) {
		until := d.seats.toldToGo(m.pod.UID)
		if until.IsZero() {
			until = now.Add(d.graceOf(m.pod))
		}
		r.At = latest(r.At, until.Add(d.args.GangDeadline.Duration))
		if d.nodes.stands(m.node) {
			r.Holds = append(r.Holds, g.holding(m))
			if l := d.seats.leaseOf(m.pod); d.seats.leases[l] != nil {
				r.Leases = append(r.Leases, l.String())
			}
		}
	}
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if !p.kept && !g.requeue.lapsed {
			continue
		}
		r.Leases = append(r.Leases, charged(p.pod))
		if p.kept && p.gpus > 0 {
			held := resolver.Holding{Node: p.node, GPUs: p.gpus}
			if h := d.seats.held[p.pod]; h != nil {
				held.Beside = h.beside
			}
			r.Holds = append(r.Holds, held)
		}
	}
	r.At = latest(r.At, now.Add(soon))
	if len(r.Holds)+len(r.Leases) == 0 {
		return nil
	}
	return r
}

// freeAt returns when something is free that may stay until an instant: then, or soon if that has passed; false once it
// has stayed so long that it is not known any more.
func freeAt(until, now time.Time) (time.Time, bool) {
	for _, at := range [...]time.Time{until, until.Add(soon), until.Add(overstay)} {
		if at.After(now) {
			return at, true
		}
	}
	return time.Time{}, false
}
