package book

import (
	"cmp"
	"iter"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// study is when a gang starts: what is known of it and of the time to come, and what follows from that. What follows
// takes longer than anything else that the book works out, so that a study can be detached and worked out while the
// book goes on.
type study struct {
	gang  *gang
	pod   *corev1.Pod
	state forecast.State
	ask   forecast.Ask
	// alone is the same for GPUs alone, to know what is in the way of a gang that gets no date; nil where it is known.
	alone *forecast.Ask
	stuck []Stuck
	// reaches are those of what the gang's pods share.
	reaches []reach
	// cycle says that this is in the scheduling cycle of the gang's leader, in which other rules can be asked.
	cycle bool
	// seen is the epoch, and then how the gang was: nothing comes of a study of one that is another by now.
	seen int64
	then gangThen

	// promise is nil for a gang that gets no date, and refusal why it gets none; byGPUsAlone is what it would be promised
	// then if it asked for GPUs alone.
	promise, byGPUsAlone *forecast.Promise
	refusal              *plan.Refusal
}

// gangThen is what a forecast of a gang is about.
type gangThen struct {
	run         types.UID
	generation  int64
	refusal     *plan.Refusal
	promise     *forecast.Promise
	reservation types.UID
	phase       rqv1.ReservationState
}

func thenOf(g *gang) gangThen {
	t := gangThen{run: g.run.UID, generation: g.run.Generation, refusal: g.refusal, promise: g.promise}
	if g.reservation != nil {
		t.reservation, t.phase = g.reservation.UID, g.reservation.Status.State
	}
	return t
}

// studyOf returns a study of what a gang asks for.
func (f *horizon) studyOf(g *gang, pod *corev1.Pod, state forecast.State, ask forecast.Ask) *study {
	return &study{gang: g, pod: pod, state: state, ask: ask, alone: f.gpusAlone(g, pod, ask),
		stuck: f.departures.stuckNow(state.Now), seen: f.waiting.epoch, then: thenOf(g)}
}

// workOut finds out what follows.
func (s *study) workOut() {
	if s.refusal == nil {
		s.promise, s.refusal = s.earliest()
	}
	if s.promise == nil && s.alone != nil {
		s.byGPUsAlone, _ = forecast.Earliest(s.state, *s.alone)
	}
}

// earliest returns when the gang can start first where what its pods share reaches all of them: without cuts, if that
// is as soon.
func (s *study) earliest() (*forecast.Promise, *plan.Refusal) {
	var best study
	var first *plan.Refusal
	for _, excluded := range within(s.reaches, s.ask.Excluded) {
		one := *s
		one.ask.Excluded = excluded
		p, refusal := one.earliestThere()
		first = cmp.Or(first, refusal)
		if is := best.promise; p != nil && (is == nil || p.At.Before(is.At) || p.At.Equal(is.At) && is.Cuts && !p.Cuts) {
			best = one
			best.promise = p
		}
	}
	if best.promise == nil {
		return nil, first
	}
	s.ask = best.ask
	return best.promise, nil
}

// earliestThere returns when the gang can start, with nobody cut on nodes where something is stuck if there is another
// way: what is freed there may not go either.
func (s *study) earliestThere() (*forecast.Promise, *plan.Refusal) {
	if len(s.stuck) > 0 {
		elsewhere := s.ask
		elsewhere.Excluded = off(s.stuck, s.ask.Excluded)
		if p, _ := forecast.Earliest(s.state, elsewhere); p != nil {
			s.ask = elsewhere
			return p, nil
		}
	}
	return forecast.Earliest(s.state, s.ask)
}

// detach has the study rest on nothing that the book changes.
func (s *study) detach() {
	s.state.Fleet = s.state.Fleet.Clone()
	s.state.Accounts = s.state.Accounts.Outline(s.leases(), s.state.Now)
	s.ask.Claim.Most = maps.Clone(s.ask.Claim.Most)
	if s.alone != nil {
		s.alone.Claim.Most = maps.Clone(s.alone.Claim.Most)
	}
}

// attach has the study rest on the book again.
func (s *study) attach(fleet *topology.Fleet, accounts *budget.Accounts) {
	s.state.Fleet, s.state.Accounts = fleet, accounts
}

// leases goes through the Leases that come to an end in the time to come.
func (s *study) leases() iter.Seq[string] {
	return func(yield func(string) bool) {
		all := func(releases []forecast.Release) bool {
			for i := range releases {
				for _, lease := range releases[i].Leases {
					if !yield(lease) {
						return false
					}
				}
			}
			return true
		}
		if !all(s.state.Releases) {
			return
		}
		for i := range s.state.Ahead {
			if !all(s.state.Ahead[i].Ousts) {
				return
			}
		}
	}
}

// begin returns the study of a Run's gang whose promise is to be worked out again, detached; nil where nothing is left
// to be found out.
func (v *activations) begin(run types.UID, now time.Time) *study {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := v.roster.gangs[run]
	if g == nil {
		return nil
	}
	at, _ := v.waiting.inLine(g)
	if !v.agenda.outdated(g, at, now) {
		return nil
	}
	pod := g.sample()
	if pod == nil || g.activating() || v.agenda.dateless(g, now) || g.denied() || !g.mayHaveDate(at) {
		v.note(g, now) // also where nothing is to be worked out
		if pod != nil {
			v.makePromise(g, pod, now)
		}
		return nil
	}
	defer v.kept.lend(g)()
	s := v.study(g, pod, now)
	s.detach()
	return s
}

// end has what follows from a study be promised, unless its gang is another by now: that is studied anew.
func (v *activations) end(s *study, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := s.gang
	switch {
	case g.run == nil || v.roster.gangs[s.then.run] != g || !s.cycle && !v.agenda.worksOut(g):
		return
	case !g.waits() || g.activation != nil:
		return
	case thenOf(g) != s.then:
		if s.cycle {
			v.queueUp(g, now) // it does not come again by itself
		}
		return
	}
	if at, all := v.waiting.inLine(g); !g.mayHaveDate(at) { // others have come before it meanwhile
		v.standBack(g, at, all, now)
		return
	}
	defer v.kept.lend(g)()
	s.attach(v.future.fleet, v.future.accounts)
	v.conclude(s, now)
}

// refresh works out again when a gang starts, beside the book.
func (v *activations) refresh(run types.UID, now time.Time) {
	if s := v.begin(run, now); s != nil {
		s.workOut()
		v.end(s, now)
	}
}
