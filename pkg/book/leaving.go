package book

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// soon is when, at a guess, something is free whose time is up.
const soon = 5 * time.Second

// overstay is how long a pod may still be there once its grace period is over: its kubelet stops its containers then, and
// takes a moment to say so. From then on it is not known when it goes (R37).
const overstay = 30 * time.Second

// sighting is when it was first seen that something is about to be free which the API does not tell an instant of. It begins
// anew once the pod has ended.
type sighting struct {
	at    time.Time
	ended bool
}

// graceOf returns how long a pod may take to end: what the API server has set in it, as far as it is given so much (R37).
func (b *Book) graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		longest := max(b.args.MaxGracePeriod.Duration, b.args.NoticePeriod.Duration)
		return time.Duration(min(*s, int64(longest/time.Second))) * time.Second
	}
	return 0
}

// graceOfAll returns how long the pods of a gang may take to end that hold anything.
func (b *Book) graceOfAll(g *gang) time.Duration {
	longest := time.Duration(0)
	for m := range g.all() {
		if m.placed() {
			longest = max(longest, b.graceOf(m.pod))
		}
	}
	return longest
}

// told notes until when a pod may stay that has been told to go: others may have another date now.
func (b *Book) told(h *holding, pod *corev1.Pod) {
	if at := pod.DeletionTimestamp; at != nil && !h.until.Equal(at.Time) {
		h.until = at.Time
		b.leavers[pod.UID] = h
		b.waiting.epoch++
	}
}

// toldToGo returns until when a pod that has been told to go may stay, as the API has it; zero when it has not been told.
func (b *Book) toldToGo(pod types.UID) time.Time {
	if m := b.members[pod]; m != nil {
		if at := m.pod.DeletionTimestamp; at != nil && m.stage != finished {
			return at.Time
		}
		return time.Time{}
	}
	if h := b.held[pod]; h != nil {
		return h.until
	}
	return time.Time{}
}

// freeAt returns when something is free that may stay until an instant: then, or soon if that has passed; false once it has
// stayed so long that it is not known any more.
func freeAt(until, now time.Time) (time.Time, bool) {
	for _, at := range [...]time.Time{until, until.Add(soon), until.Add(overstay)} {
		if at.After(now) {
			return at, true
		}
	}
	return time.Time{}, false
}

// departures returns what is on its way out, by when it is free: what pods hold that have been told to go or that are about
// to be, and Leases that are about to be closed. What is there although its time is long over is nobody's hope.
func (b *Book) departures(now time.Time) []forecast.Release {
	byTime := map[int64]*forecast.Release{}
	add := func(until time.Time, held resolver.Holding) *forecast.Release {
		at, known := freeAt(until, now)
		if !known {
			return nil
		}
		r := byTime[at.UnixNano()]
		if r == nil {
			r = &forecast.Release{At: at, Leaving: !at.After(now.Add(b.args.MaxGracePeriod.Duration))}
			byTime[at.UnixNano()] = r
		}
		r.Holds = append(r.Holds, held)
		return r
	}
	for name, l := range b.leases {
		if !b.ending(l, now) {
			l.seen = sighting{}
			continue
		}
		if r := add(b.untilOf(l, now), resolver.Holding{Node: l.node, GPUs: l.charge.GPUs}); r != nil {
			r.Leases = append(r.Leases, name.String())
		}
	}
	for pod, h := range b.leavers {
		if !h.until.IsZero() && !h.leased && !h.shard && !h.vacant && b.members[pod] == nil {
			add(h.until, resolver.Holding{Node: h.node, GPUs: h.gpus}) // another workload's
		}
	}
	out := make([]forecast.Release, 0, len(byTime))
	for _, r := range byTime {
		slices.Sort(r.Leases)
		out = append(out, *r)
	}
	return out
}

// untilOf returns until when what a Lease holds, which is about to be closed, may stay: as the API tells, or for as long as its
// pod may take from when that was first seen.
func (b *Book) untilOf(l *lease, now time.Time) time.Time {
	if told := b.toldToGo(l.pod); !told.IsZero() {
		return told
	}
	m := b.members[l.pod]
	if ended := m == nil || m.stage == finished; l.seen.at.IsZero() || l.seen.ended != ended {
		l.seen = sighting{now, ended}
	}
	switch {
	case l.seen.ended:
		return l.seen.at
	case m.doomed():
		return l.seen.at.Add(max(b.graceOf(m.pod), b.args.NoticePeriod.Duration))
	}
	return l.seen.at.Add(b.graceOf(m.pod))
}

// ending reports whether a Lease is about to be closed, and its GPUs are for others then.
func (b *Book) ending(l *lease, now time.Time) bool {
	m, g := b.members[l.pod], b.gangs[types.UID(l.charge.Run)]
	switch h := b.held[l.pod]; {
	case h != nil && (h.vacant || h.shard), g != nil && g.keepsRoom() && b.stands(l.node):
		return false
	case m == nil, m.stage == finished, m.outgoing(), g == nil, g.run == nil:
		return true
	}
	end, bounded := g.end(now)
	return g.over() || bounded && !end.After(now)
}

// outgoing reports whether a member is on its way out, and nobody takes its place there: it is cut, its Run waits, or goes on
// without it.
func (m *member) outgoing() bool {
	return m.doomed() || m.leaving && (!m.gang.started() || m.surplus() && !m.leavesRoom())
}
