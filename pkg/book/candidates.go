package book

import (
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// candidates says which Runs may be cut for a gang (R19, R22).
type candidates struct {
	args   *config.Args
	fleet  *topology.Fleet
	roster *roster
	agenda *agenda
	seats  *seating
}

// anyLent reports whether anybody has grown beyond its total into what a gang could use.
func (i *candidates) anyLent(to *gang) bool {
	for g := range i.roster.classes.elastic {
		same := g != to && g.shape == nil && g.full.Flavor == to.full.Flavor
		if same && g.demand.GPUs() > int(g.run.Spec.Resources.TotalGPUs) {
			return true
		}
	}
	return false
}

// draws reports whether a Run that holds GPUs, or is about to, may be drawn in a lottery (R20).
func (i *candidates) draws(g *gang) bool {
	return i.mayDraw(func() bool {
		return g.touches(func(m *member) bool {
			return m.placed() && (m.payer.relation != rqv1.RelationOwn ||
				i.seats.accounts.OverdraftOf(i.seats.leaseOf(m.pod).String()) > 0)
		})
	})
}

// drawsOnce reports whether a Run may be drawn in a lottery once it has started by a promise.
func (i *candidates) drawsOnce(p *forecast.Promise) bool {
	return i.mayDraw(func() bool {
		return slices.ContainsFunc(paidBy(p), func(paid forecast.Paid) bool { return paid.Relation != rqv1.RelationOwn })
	})
}

// mayDraw reports whether configuration lets a Run be drawn, which may hang on whether it borrows.
func (i *candidates) mayDraw(borrows func() bool) bool {
	switch i.args.Lottery {
	case config.LotteryNone:
		return false
	case config.LotteryBorrowed:
		return borrows()
	}
	return true
}

// shieldOf returns for how long a Run is not cut that is shielded when it starts: a checkpoint interval, or what
// configuration says, and never longer than that allows: the interval is the Run's own word (R22).
func (i *candidates) shieldOf(run *rqv1.Run) time.Duration {
	shield := i.args.ActivationShield.Duration
	if r := run.Spec.Runtime; r != nil && r.Checkpoint != nil {
		shield = r.Checkpoint.Duration
	}
	return min(shield, i.args.MaxShield.Duration)
}

// shield returns until when a Run that runs, or starts, may not be cut: because it was started by an activation, or had
// been drawn before (R22), and not within the second in which it started, since its status would not tell that it did
// so before. One that is starting has not started: it is not cut before it has, and whoever waits for what it holds has
// a date after that.
func (i *candidates) shield(g *gang, now time.Time) time.Time {
	at, ok := g.startedAt()
	if !ok {
		at = i.startsAt(g, now)
	}
	if g.activation != nil && !g.activation.returns() || i.agenda.reservations.activated(g.run.UID, at) ||
		i.agenda.reservations.drawn(g.run.UID, at) {
		return at.Add(max(time.Second, i.shieldOf(g.run)))
	}
	return at.Add(time.Second)
}

// startsAt returns when, at a guess, a Run starts that has its places: soon, but not while those have time to leave who
// are cut for it.
func (i *candidates) startsAt(g *gang, now time.Time) time.Time {
	left := now
	switch notice := i.args.NoticePeriod.Duration; {
	case g.awaiting == 0:
	case g.activation != nil:
		left = g.activation.At.Add(notice)
	case g.activating() && g.reservation.Status.ActivatedAt != nil:
		left = g.reservation.Status.ActivatedAt.Add(notice)
	default:
		left = g.freeBy
	}
	return latest(now, left).Add(soon)
}

// shieldFrom returns until when a Run may not be cut for another: until its shield is over and, if the other has been
// cut for it, as long again from when that was decided, whether or not it has started anew since. No longer than that:
// who loses once is to have a date like anybody else (R17, R22).
func (i *candidates) shieldFrom(g, other *gang, now time.Time) time.Time {
	until := i.shield(g, now)
	if other.run == nil {
		return until
	}
	if at := i.agenda.reservations.lastCut(g.run.UID, other.run.UID); !at.IsZero() {
		until = latest(until, at.Add(i.shieldOf(g.run)))
	}
	return until
}
