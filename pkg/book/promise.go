package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// refused returns the study of the gang of a pod that has been refused in its cycle, detached, if it is to be known at
// once when it starts; otherwise it is found out soon.
func (v *activations) refused(pod types.UID, now time.Time) *study {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.roster.members[pod]
	switch {
	case m == nil || !m.gang.waits():
	case m.gang.dateHasCome(now), m.gang.neglected(now):
		defer v.kept.lend(m.gang)()
		if s := v.prepare(m.gang, m.pod, now); s != nil {
			s.cycle = true
			s.detach()
			return s
		}
	default:
		v.queueUp(m.gang, now)
	}
	return nil
}

// makePromise works out when a gang starts that was refused. Who is cut for it is decided in its leader's cycle alone:
// other scheduling rules can be asked about it then.
func (v *activations) makePromise(g *gang, pod *corev1.Pod, now time.Time) {
	defer v.kept.lend(g)()
	if s := v.prepare(g, pod, now); s != nil {
		s.workOut()
		v.conclude(s, now)
	}
}

// prepare returns a study of a gang that was refused; nil if there is nothing to be worked out.
func (v *activations) prepare(g *gang, pod *corev1.Pod, now time.Time) *study {
	switch {
	case g.activation != nil:
		return nil // it is being published
	case g.activating():
		v.resume(g, pod, now)
		return nil
	case v.agenda.dateless(g, now), g.denied():
		return nil
	case g.since.IsZero():
		g.since = now
	}
	if at, all := v.waiting.inLine(g); !g.mayHaveDate(at) {
		v.standBack(g, at, all, now)
		return nil
	}
	return v.study(g, pod, now)
}

// study returns what there is to know of a gang whose start is to be worked out.
func (v *activations) study(g *gang, pod *corev1.Pod, now time.Time) *study {
	v.waiting.forgive(g, now)
	return v.future.future(g, pod, now)
}

// conclude has what follows from a study be promised to its gang, or be decided if it has come.
func (v *activations) conclude(s *study, now time.Time) {
	g, p := s.gang, s.promise
	v.note(g, now)
	g.seen = s.seen
	at, all := v.waiting.inLine(g)
	v.retell(s)
	v.rebuffs.tellRebuff(g, now)
	if p != nil && p.Returns() && g.promise != nil && g.promise.Returns() && !g.promise.At.After(now) {
		p.At = g.promise.At // it has come, and stays
	}
	if v.nodes.asks && !s.cycle && v.decidesBy(g, p, now) {
		g.ripe = true
		v.waiting.wake(g)
		return
	}
	if p == nil && !now.Before(g.check.clear) && g.unlay(true, now) {
		g.ripe = true
		v.waiting.wake(g)
		return
	}
	g.turn = time.Time{} // it has come, or is worked out anew
	p, done := v.takeBack(s, p, now)
	if !done {
		p, done = v.cutOthers(s, p, now)
	}
	if done {
		return
	}
	if p == nil && !g.refusal.NeedsNodes() {
		v.standInLine(g, at, all, s.state.Known.IsZero(), now)
		v.waiting.hasNoDate(g)
	} else {
		v.leaveLine(g)
		v.waiting.dates(g)
	}
	if p != nil && p.Now != nil && p.Now.MaxDuration > 0 && p.At.After(now.Add(v.args.ReservationLead.Duration)) {
		g.since = now // if that is so no longer, whoever may be cut is told as long before as others are
	}
	g.usurped = ""
	if p == nil && g.promise != nil {
		g.usurped = v.usurpers(g)
	}
	switch v.agenda.setPromise(g, p); {
	case p == nil || p.Cuts || g.unpaid:
	case now.Before(s.state.NotBefore):
		g.turn = s.state.NotBefore
	default:
		v.takeLeaving(g, s.pod, p, s.state, s.ask, s.cycle, now)
	}
}

// note notes that it is worked out now when a gang starts. A Reservation that has waited for that is looked at again.
func (v *activations) note(g *gang, now time.Time) {
	if g.undated() && g.reservation != nil {
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
	g.looked, g.seen, g.woken, g.ripe = now, v.waiting.epoch, false, false
}

// decidesBy reports whether it is to be decided by a promise now: it has come, and nothing holds it back.
func (v *activations) decidesBy(g *gang, p *forecast.Promise, now time.Time) bool {
	switch {
	case !due(p, now) || !v.agenda.committedTo(g) || g.unpaid:
		return false
	case p.Returns():
		return !now.Before(v.future.asksLoansFrom(g))
	}
	return !v.agenda.braked(g, now)
}

// takeBack decides by a promise that has come, and by which nobody is cut. It reports whether it has; otherwise it
// returns what is promised instead. What came to nothing is asked for again after a rest.
func (v *activations) takeBack(s *study, p *forecast.Promise, now time.Time) (instead *forecast.Promise, decided bool) {
	g := s.gang
	again, rest := v.future.asksLoansFrom(g), now.Add(v.args.ReservationLead.Duration)
	switch {
	case !due(p, now) || !p.Returns():
	case now.Before(again):
		p.At = again
	case v.agenda.committedTo(g) && !g.unpaid:
		if v.decide(s, true, now) {
			return nil, true
		}
		g.asksAgain, s.state.Loans = rest, nil
		p, _ = forecast.Earliest(s.state, s.ask)
		if due(p, now) && p.Returns() {
			p.At = rest
		}
	}
	return p, false
}

// cutOthers decides by a promise that has come, and by which others are cut, unless that is held back: its date stands
// still then. It reports whether it has done either; otherwise it returns what is promised instead.
func (v *activations) cutOthers(s *study, p *forecast.Promise, now time.Time) (instead *forecast.Promise, done bool) {
	g := s.gang
	if !due(p, now) || p.Returns() || !v.agenda.committedTo(g) || g.unpaid {
		return p, false
	}
	if !v.agenda.braked(g, now) && v.decide(s, false, now) {
		return nil, true
	}
	if v.agenda.braked(g, now) {
		v.agenda.stand(g, p, now)
		return nil, true
	}
	rest := now.Add(v.args.ReservationLead.Duration)
	g.since, s.state.NotBefore = now, rest // its turn comes again
	p, _ = forecast.Earliest(s.state, s.ask)
	if due(p, now) {
		p.At = rest
	}
	return p, false
}

// due reports whether others may be cut by a promise now, or give back what they have on loan.
func due(p *forecast.Promise, now time.Time) bool { return p != nil && p.Cuts && !p.At.After(now) }

// adopt has a gang that waits know its Reservation, and one that does not wait forget its promise.
func (v *activations) adopt(g *gang) {
	if g.suspended() || g.run.Status.Phase != rqv1.RunPending && g.run.Status.Phase != "" {
		v.withdraw(g)
		return
	}
	if q := g.run.Status.Queue; q != nil && g.looked.IsZero() && g.queue == nil {
		g.queue = &QueuePlace{Ahead: int(q.Ahead), Of: int(q.Of), At: q.At.Time}
	}
	if r := v.agenda.reservations.current(g.run.UID); r != nil && g.reservation == nil {
		v.reserve(g, r)
	} else if g.onRecord == nil {
		v.agenda.recall(g)
	}
}

// withdraw takes back what was promised to a gang: it has started, or it is gone. What is kept for a rank of one that
// runs, whose node is being emptied, was not.
func (v *activations) withdraw(g *gang) {
	if !g.room.moves || !g.started() {
		v.kept.giveUpRoom(g)
	}
	if g.restraint.limited {
		g.restraint = restraint{}
		for _, other := range v.waiting.gangs {
			if other.restraint.limited {
				other.restraint.until = time.Time{} // it may have waited for this one alone
			}
		}
		v.agenda.signalDue()
	}
	if g.promised() != nil {
		v.agenda.setPromise(g, nil)
	}
	g.queue = nil
	v.unsay(g)
	g.since, g.looked, g.ripe, g.stuck = time.Time{}, time.Time{}, false, nil
}

// dismiss has a gang forget its Reservation. If others were to be cut for it who have not left, it gives its places
// back and is planned anew.
func (v *activations) dismiss(g *gang, r *rqv1.Reservation) {
	if g.reservation == nil || g.reservation.UID != r.UID {
		return
	}
	v.letOff(g)
	g.reservation, g.stuck = nil, nil
	if r.Status.CalledOff != "" || g.onRecord != nil {
		v.agenda.setPromise(g, nil) // it is given another one later
	}
	if g.awaiting > 0 {
		v.places.unwind(g)
	}
	if g.run != nil {
		v.mail.reconcile(keyOf(g.run), lane.Cut)
	}
	v.waiting.again(g)
}

// reserve notes the Reservation of a gang. What has been decided is published once the nonce is there.
func (v *activations) reserve(g *gang, r *rqv1.Reservation) {
	if g.reservation == nil && g.promise != nil {
		for i := range g.promise.Conflicts {
			v.mail.reconcile(named(g.promise.Conflicts[i].Run), lane.Date) // its name was not known when they came to be at risk
		}
	}
	g.reservation = r
	if g.suspended() {
		return // it is about to be canceled
	}
	v.agenda.recall(g)
	if work := v.agenda.workOn(g); work == lane.Cut {
		v.mail.reconcile(keyOf(g.run), work)
	}
	if g.since.IsZero() {
		g.since = r.CreationTimestamp.Time
	}
	if revealed(r) {
		v.unsay(g)
		v.waiting.again(g)
	}
	if v.agenda.ripens(g) {
		v.agenda.signalDue()
	}
}

// recorded returns what a gang's Reservation promises. It names nodes; how many pods are on each follows from their
// size. Of a large conflict set it has a part alone, by which nothing may be decided: completeRecorded is to follow.
func (v *activations) recorded(g *gang) *forecast.Promise {
	spec := &g.reservation.Spec
	p := &forecast.Promise{At: spec.EarliestStart.Time, Payers: spec.PayingEnvelopes,
		Conflicts: g.reservation.Status.ConflictSet}
	if spec.IntendedSlice == nil {
		return p
	}
	least := g.full.Least()
	left := least.HeldGPUs()
	for _, name := range spec.IntendedSlice.Nodes {
		if node := v.nodes.byName[name]; node != nil && left > 0 {
			gpus := min(left, v.nodes.gpusOf(node)/least.GPUsPerPod*least.GPUsPerPod)
			p.Nodes = append(p.Nodes, resolver.Holding{Node: name, GPUs: gpus,
				Beside: least.Beside.Times(gpus / least.GPUsPerPod)})
			left -= gpus
		}
	}
	return p
}

// completeRecorded works out anew who may be cut by a promise whose Reservation does not list all of them. If nobody
// would be by now, nobody is known to.
func (v *activations) completeRecorded(g *gang, now time.Time) {
	whole := *g.promise
	whole.Conflicts, whole.Odds = nil, ""
	pod := g.model()
	s := v.future.studyOf(g, pod, v.future.stateFor(g, now), v.future.askFor(g, g.full.Least(), pod))
	if p, _ := s.earliest(); p != nil && p.Cuts {
		whole.Conflicts, whole.Odds = p.Conflicts, p.Odds
	}
	v.agenda.setPromise(g, &whole)
}

// prospectOf returns when a Run is going to start, or whether it is going to grow.
func (v *activations) prospectOf(g *gang) Prospect {
	decided := g.activation
	if decided != nil && !decided.Failed &&
		(g.awaitsPods() || g.check.again || g.bereft() || g.untold() && v.nodes.anyContradicts(g) != "") {
		decided = nil // nobody is told before all of its pods have been made and admitted, and rules been asked about them
	}
	undated := g.undated() && g.shape == nil // that no node has room for it is known at once
	return Prospect{Promise: g.promise, Undated: undated, Usurped: g.usurped, InLine: g.queue, Refusal: g.refusal,
		Activation: decided, Reservation: g.reservation, Leaving: g.awaiting, Stuck: g.stuck,
		Brake: v.agenda.brakeOn(g), CalledOff: v.agenda.calledOffBy(g), GrowTo: g.growth.to,
		GrowthLacks: g.growthLacks(),
		Narrower:    int32(g.narrower * g.full.GPUsPerPod), RoomLapsed: g.requeue.lapsed,
		Shards: g.allowedShards(), Lost: v.nodes.lostRanks(g), Moved: g.movedRanks(), Died: v.nodes.deadRanks(g),
		LastLoss: g.lastLoss(), Outlook: g.outlook(), Tried: g.saidBefore()}
}

// Prospect is when a Run that waits is going to start, and whether one that runs is going to grow.
type Prospect struct {
	// Promise is nil for a Run that has no date, and Refusal why it does not start now. Undated says that it has
	// not been worked out yet whether it has one.
	Promise *forecast.Promise
	Undated bool
	Refusal *plan.Refusal
	// Tried is what was said of the wait of a rank that is tried now; empty for none.
	Tried string
	// Usurped says who has taken what a Run was to have that lost its date; empty where nobody is known to.
	Usurped string
	// InLine is the Run's place in line; nil for one that is forecast.
	InLine *QueuePlace
	// Activation is what is to be published; nil when nothing is.
	Activation *Activation
	// Reservation is the Run's as the API was last seen to have it; nil when there is none that has not ended.
	Reservation *rqv1.Reservation
	// Brake says why nobody is cut for the Run although its date may have come, and CalledOff by which word its activation
	// is not to go on; nil when it is (R36).
	Brake     string
	CalledOff *brake.Word
	// Leaving is how many pods of others are still to end before the Run starts.
	Leaving int
	// Stuck are the pods that were to make room for the Run and should be long gone: it is planned around them (R37).
	Stuck []Stuck
	// GrowTo is the width in GPUs that the Run, which has started, is to grow to now; 0 when it is not to (R23).
	GrowTo int32
	// GrowthLacks is why a running Run does not grow to what it desires; empty where it does, or that is not known.
	GrowthLacks rqv1.WidthLacks
	// Narrower is the width in GPUs at which a running Run that has lost ranks could go on without more room; 0 when there
	// is none (R27).
	Narrower int32
	// Shards is how many pods an opportunistic Run may have; 0 for any other Run.
	Shards int
	// Lost are the ranks of a running Run that have no place because the node of the last one that they had was lost, and
	// those nodes.
	Lost map[int]string
	// Moved are the ranks of a running Run whose last pod left its node for maintenance.
	Moved map[int]bool
	// Outlook is when a suspended Run would start; nil while that is not known, and for any other Run.
	Outlook *Outlook
	// Died are the ranks of a running Run that have no place because the last pod that had it died by itself, and those
	// pods.
	Died map[int]types.UID
	// LastLoss is when the Run lost a rank last that it lacks; zero when it lacks none that it has had.
	LastLoss time.Time
	// RoomLapsed says that a requeued Run no longer keeps its room, and its status says that it does (R22).
	RoomLapsed bool
}
