package book

import (
	"cmp"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// outlookMaxAge is how old the forecast of a suspended Run may grow before it is worked out again, whatever has
// changed: nothing is promised by it, and there may be thousands.
const outlookMaxAge = 5 * time.Minute

// foresight is when a suspended Run would start.
type foresight struct {
	outlook    *Outlook
	generation int64 // of the Run that it is about
}

// foresees returns when the forecast of a suspended gang is to be worked out again; zero for at once, and false if it
// is not to be: while it holds anything it is not known what there is.
func (g *gang) foresees() (at time.Time, ok bool) {
	if !g.suspended() || g.run.Status.Phase == rqv1.RunRunning || g.active.present+g.spares.present > 0 {
		return time.Time{}, false
	}
	switch {
	case g.ahead.outlook == nil:
		return time.Time{}, true
	case g.ahead.generation != g.run.Generation:
		return g.ahead.outlook.At, true
	}
	return g.ahead.outlook.At.Add(outlookMaxAge), true
}

// nextOutlook tells when a suspended Run's forecast is to be worked out.
func (q *trials) nextOutlook(e *earliest, now time.Time) {
	for g := range q.roster.classes.suspended {
		if at, ok := g.foresees(); ok {
			e.by(latest(now, at))
		}
	}
}

// unforeseen returns the suspended Run whose forecast is to be worked out next. Namespaces take turns, so that none
// keeps others from their answers by editing its Runs; in each, who only asks comes first, then a Run that has no
// forecast, then the oldest forecast's.
func (q *trials) unforeseen(now time.Time) (run types.UID, found bool) {
	q.mu.Lock()
	defer q.mu.unlockUnchanged()
	var first *gang
	var due time.Time
	for g := range q.roster.classes.suspended {
		at, ok := g.foresees()
		if !ok || at.After(now) {
			continue
		}
		if first == nil || cmp.Or(q.foreseen[g.run.Namespace].Compare(q.foreseen[first.run.Namespace]),
			asksFirst(g, first), at.Compare(due), byAge(g, first)) < 0 {
			first, due = g, at
		}
	}
	if first == nil {
		return "", false
	}
	return first.run.UID, true
}

// asksFirst orders Runs that only ask before others.
func asksFirst(x, y *gang) int {
	switch {
	case x.run.WhatIf() == y.run.WhatIf():
		return 0
	case x.run.WhatIf():
		return -1
	}
	return 1
}

// tookTurn notes that a Run's forecast has been worked out, and forgets the turns that are as good as none.
func (q *trials) tookTurn(g *gang, now time.Time) {
	maps.DeleteFunc(q.foreseen, func(_ string, at time.Time) bool { return now.After(at.Add(outlookMaxAge)) })
	q.foreseen[g.run.Namespace] = now
}

// foresee works out when a suspended Run would start, beside the book, and has its status say so.
func (q *trials) foresee(run types.UID, now time.Time) {
	g, t := q.beginTrial(run, now)
	if t == nil {
		return
	}
	if t.study != nil {
		t.study.workOut()
	}
	q.mu.Lock()
	defer q.mu.unlockUnchanged()
	if g.run == nil || !g.suspended() || q.roster.gangs[run] != g {
		return
	}
	if t.study != nil {
		t.study.attach(q.fleet, q.accounts)
	}
	o := q.conclude(t, now)
	g.ahead = foresight{&o, t.run.Generation}
	q.mail.reconcile(keyOf(g.run), lane.Date)
}

// beginTrial returns a suspended gang, with what is found out about it beside the book; nil where nothing is any more.
func (q *trials) beginTrial(run types.UID, now time.Time) (*gang, *trial) {
	q.mu.Lock()
	defer q.mu.unlockUnchanged()
	g := q.roster.gangs[run]
	if g == nil || !g.suspended() {
		return nil, nil
	}
	q.tookTurn(g, now)
	t := q.begin(g.run, now)
	if t.study != nil {
		t.study.detach()
	}
	return g, t
}

// trial is how it is found out what would happen to a Run.
type trial struct {
	run *rqv1.Run
	// gang is the Run's as if it had just been submitted, with why it is refused; nil for one that is opportunistic.
	gang *gang
	// so far is what is known, and study when it would start; nil where that is known.
	soFar Outlook
	study *study
}

// begin plans a Run that has not been submitted, or is suspended.
func (q *trials) begin(run *rqv1.Run, now time.Time) *trial {
	if run.Spec.Opportunistic {
		return &trial{run: run, soFar: q.fillWith(run, now)}
	}
	places, g, refusal := q.tryOut(run, now)
	t := &trial{run: run, gang: g, soFar: Outlook{At: now, NotAsked: rulesBeyond(podOf(run)), Remarks: q.remarks(g)}}
	if refusal == nil {
		t.soFar.GPUs, t.soFar.GPUsPerPod, t.soFar.Places = g.demand.GPUs(), g.demand.GPUsPerPod, places
		return t
	}
	g.refusal, t.soFar.Refusal = refusal, refusal
	g.place = q.waiting.order.wouldTake(g)
	if at, _ := q.waiting.placeOf(g); g.shape == nil && g.mayHaveDate(at) {
		t.study = q.future.studyOf(g, podOf(run), q.future.stateFor(g, now),
			q.future.askFor(g, g.full.Least(), podOf(run)))
		t.study.stuck = nil // they may be gone by then
	}
	return t
}

// remarks says what there is to say of the shape that a gang would have.
func (q *trials) remarks(g *gang) []string {
	if g.shape != nil {
		return nil
	}
	return plan.Remarks(&g.run.Spec, q.nodes.podGPUs(podOf(g.run)), g.full, g.shapedFor.fleet)
}

// conclude returns what would happen to a Run, once its study has been worked out.
func (q *trials) conclude(t *trial, now time.Time) Outlook {
	o, g, s := t.soFar, t.gang, t.study
	if o.Refusal == nil || g == nil || g.shape != nil {
		return o
	}
	if s != nil && s.promise != nil {
		o.Promise = s.promise
	} else if s != nil {
		q.future.nodes.sayWithout(s.refusal, q.future.rejection(s), g)
		s.refusal.Bound(s.refusal.MaxDuration)
		o.Refusal = s.refusal
	}
	if o.Promise == nil && !o.Refusal.NeedsNodes() {
		at, all := q.waiting.placeOf(g)
		o.InLine = &QueuePlace{Ahead: at.ahead, Of: all, At: now}
	}
	claim := q.future.agenda.debts.claim(g, nil, now)
	o.Refusal.Advice = plan.Advise(q.accounts, g.full.Least(), claim, false, o.Refusal, now)
	return o
}

// outlook returns when a suspended gang would start; nil if that is not known, or it is not.
func (g *gang) outlook() *Outlook {
	if !g.suspended() {
		return nil
	}
	return g.ahead.outlook
}
