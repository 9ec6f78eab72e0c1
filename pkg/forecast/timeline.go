package forecast

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// event is an instant at which something is known to change.
type event struct {
	at time.Time
	// takes says that the event may make a Run not fit that fitted before: a window closes, or another Reservation starts.
	takes bool
	// opens says that a window opens, and returns that nodes do of which an outage is planned.
	opens, returns bool
	// release, and ahead, is what it is about; nil for a window.
	release *Release
	ahead   *Ahead
	// ousted is what those give back at the event who go for the Run that starts then.
	ousted []Release
}

// timeline is the known future as events. As many of them as there are marks have come to pass on the fork.
type timeline struct {
	s      *State
	ask    *Ask
	bare   []event // without those who go for Runs that are ahead
	events []event
	wanted int // GPUs
	fork   *plan.Fork
	marks  []int // where the fork stood before each event
}

func newTimeline(s *State, ask *Ask) *timeline {
	t := &timeline{s: s, ask: ask, fork: plan.NewFork(s.Fleet, s.Accounts)}
	for i := range s.Releases {
		t.add(event{at: s.Releases[i].At, release: &s.Releases[i]})
	}
	for i := range s.Ahead {
		a := &s.Ahead[i]
		starts := s.starts(a.At)
		if a.Younger {
			starts = starts.Add(1) // on the same date it comes after
		}
		t.add(event{at: starts, ahead: a, takes: true})
		if a.Ends.After(starts) {
			t.add(event{at: a.Ends, release: a.release()})
		}
	}
	attempt := t.attempt(s.Now)
	t.wanted = attempt.WantedGPUs()
	for _, edge := range attempt.Windows() {
		if !edge.Opens.IsZero() {
			t.add(event{at: edge.Opens.Add(s.WindowDelay), opens: true})
		}
		if !edge.Closes.IsZero() {
			t.add(event{at: edge.Closes, takes: true})
		}
	}
	ends := ask.Claim.MaxDuration > 0 || !ask.Claim.Until.IsZero()
	for _, date := range attempt.Dates(func(k budget.Key) []budget.Owed { return s.Owed[k] }) {
		t.add(event{at: date.Add(-s.MoneyHorizon), takes: true}) // another's money is kept from then on
		if ends {                                                // or from when the Run would not have ended by that date
			t.add(event{at: date.Add(1 - ask.Claim.MaxDuration), takes: true})
		}
	}
	for _, edge := range attempt.Outages(s.Fleet) {
		t.add(event{at: edge.Opens, returns: true})
		t.add(event{at: edge.Closes, takes: true})
	}
	slices.SortStableFunc(t.bare, func(x, y event) int { return cmp.Or(x.at.Compare(y.at), order(&x)-order(&y)) })
	t.events = t.ousted(time.Time{})
	return t
}

// release is what a Run that is ahead gives back when it ends.
func (a *Ahead) release() *Release {
	return &Release{At: a.Ends, Run: a.Run, Holds: a.Holds, Leases: slices.Sorted(maps.Keys(a.Charges))}
}

// ousted returns the events as they are when those go who go for Runs that are ahead and start by an instant, or at any
// if that is zero: they give back then what they would have given back later. Nobody goes for a Run whose date has come
// already: it may be held back.
func (t *timeline) ousted(by time.Time) []event {
	events := slices.Clone(t.bare)
	here, gone := map[rqv1.NamespacedName]*Ahead{}, map[rqv1.NamespacedName]time.Time{}
	for i := range events {
		e := &events[i]
		if r := e.release; r != nil {
			if at, is := gone[r.Run]; is && (!r.Kept || at.Before(e.at)) {
				e.release = &Release{At: e.at}
			} else if !r.Kept && r.Run != (rqv1.NamespacedName{}) {
				gone[r.Run] = e.at
			}
		}
		if e.ahead == nil {
			continue
		}
		here[e.ahead.Run] = e.ahead
		if !e.ahead.At.After(t.s.Now) || !by.IsZero() && e.at.After(by) {
			continue
		}
		for _, r := range e.ahead.Ousts {
			if _, is := gone[r.Run]; is || r.Run == e.ahead.Run {
				continue
			}
			gone[r.Run] = e.at
			if a := here[r.Run]; a != nil {
				r = *a.release()
			}
			e.ousted = append(e.ousted, r)
		}
	}
	return events
}

// order has what is taken come before what is given at the same instant, so that nobody fits in between.
func order(e *event) int {
	if e.takes {
		return 0
	}
	return 1
}

// departs reports whether the event is the end of something that is on its way out.
func (e *event) departs() bool { return e.release != nil && e.release.Leaving }

func (t *timeline) add(e event) {
	if e.at.After(t.s.Now) {
		t.bare = append(t.bare, e)
	}
}

// count returns how many events come to pass before the Run could start at an instant.
func (t *timeline) count(at time.Time) int {
	return sort.Search(len(t.events), func(i int) bool { return t.events[i].at.After(at) })
}

// seek has the first n events come to pass, and no others.
func (t *timeline) seek(n int) {
	for len(t.marks) < n {
		e := &t.events[len(t.marks)]
		t.marks = append(t.marks, t.fork.Mark())
		t.apply(e)
	}
	if n < len(t.marks) {
		t.fork.RevertTo(t.marks[n])
		t.marks = t.marks[:n]
	}
}

// rewind leaves the fleet and the accounts as they were.
func (t *timeline) rewind() { t.seek(0) }

func (t *timeline) apply(e *event) {
	switch {
	case e.release != nil:
		t.giveBack(e.release, e.at)
	case e.ahead != nil:
		for i := range e.ousted {
			t.giveBack(&e.ousted[i], e.at)
		}
		for name, charge := range e.ahead.Charges {
			t.fork.Open(name, charge)
		}
		for _, h := range e.ahead.Holds {
			t.fork.Take(h.Node, h.GPUs, h.Beside)
		}
	}
}

func (t *timeline) giveBack(r *Release, at time.Time) {
	for _, lease := range r.Leases {
		t.fork.Close(lease, at)
	}
	free(t.fork, r.Holds)
}

// attempt asks who pays at an instant, as things stand.
func (t *timeline) attempt(at time.Time) *plan.Attempt {
	return t.s.attempt(t.ask, at)
}

// attempt asks who pays at an instant, as things stand. What is owed to those whose dates have not come is kept for
// them; the others have started.
func (s *State) attempt(ask *Ask, at time.Time) *plan.Attempt {
	claim := ask.Claim
	claim.Owed = s.owedAt(at)
	return plan.Prepare(s.Accounts, ask.Demand, claim, ask.Missing, ask.Excluded, at)
}

// owedAt returns what is kept at an instant for those whose dates have not come by then, or who have none; nil where
// nothing is.
func (s *State) owedAt(at time.Time) func(budget.Key) []budget.Owed {
	if len(s.Owed) == 0 {
		return nil
	}
	return func(k budget.Key) []budget.Owed {
		of := budget.OwedAt(s.Owed[k], at, s.MoneyHorizon)
		n := sort.Search(len(of), func(i int) bool { return !of[i].Dateless() })
		dated := of[n:]
		dated = dated[sort.Search(len(dated), func(i int) bool { return s.starts(dated[i].At).After(at) }):]
		if n == 0 {
			return dated
		}
		return append(of[:n:n], dated...)
	}
}

// starts returns when a Run that is ahead starts: those whose dates have come do so at once.
func (s *State) starts(date time.Time) time.Time { return latest(date, s.Now.Add(1)) }

// enough reports whether so many GPUs are free as the Run wants, wherever they are.
func (t *timeline) enough() bool { return t.s.Fleet.FreeOf(t.ask.Demand.Flavor) >= t.wanted }

func (t *timeline) fits(at time.Time) bool { return t.enough() && t.attempt(at).Fits(t.s.Fleet) }

func (t *timeline) paid(at time.Time) bool { return t.attempt(at).Paid() }

// neverStarts reports whether a Run that is refused so is never going to start as things are, whoever is cut.
func neverStarts(refusal *plan.Refusal) bool {
	return refusal != nil && refusal.Reason != plan.InsufficientGPUs && !refusal.AboutMoney()
}

// stretches is how many times, at most, a search begins anew after something was taken, not counting those after which
// there are too few GPUs, wherever they are.
const stretches = 16

// firstFrom returns the number of the first event, from one to another, from which something holds. Between events that
// take, what holds once holds on, so that binary search finds it; unless GPU-hours run out meanwhile, which those spend
// who run: then it is looked for as long as somebody pays, from each window's opening on.
func (t *timeline) firstFrom(from, to int, holds func(at time.Time) bool) (int, bool) {
	for n := 0; from <= to && n < stretches; {
		from = t.taken(from, to)
		end := from
		for end < to && !t.events[end].takes && !t.events[end].opens {
			end++
		}
		last, held := end, t.holdsAfter(end, holds)
		worthIt := t.enough()
		if !held {
			last = t.stillPaid(from, end)
			held = last >= from && t.holdsAfter(last, holds)
		}
		if held {
			return from + sort.Search(last-from, func(i int) bool { return t.holdsAfter(from+i, holds) }), true
		}
		if end < to && t.events[end].takes && worthIt {
			n++
		}
		from = end + 1
	}
	return 0, false
}

// stillPaid returns the number of the last event, from one to another, after which somebody pays, if nobody does after
// all of them; else the number before the first.
func (t *timeline) stillPaid(from, to int) int {
	if t.holdsAfter(to, t.paid) {
		return from - 1 // it is room that is short
	}
	return from - 1 + sort.Search(to-from, func(i int) bool { return !t.holdsAfter(from+i, t.paid) })
}

// taken returns the number of an event up to which all is taken that is at the same instant: nobody fits in between,
// although somebody may begin to pay at that instant.
func (t *timeline) taken(n, to int) int {
	for n < to && t.events[n-1].takes && t.events[n].at.Equal(t.events[n-1].at) {
		n++
	}
	return n
}

func (t *timeline) holdsAfter(n int, holds func(at time.Time) bool) bool {
	t.seek(n)
	return holds(t.events[n-1].at)
}

// candidates returns the Runs that may be cut at an instant: Runs that have not ended by then, and Runs that
// Reservations ahead have started by then; none that goes for one of those, or has ended by then.
func (t *timeline) candidates(domains map[string]bool, at time.Time) []resolver.Candidate {
	out := slices.Clone(t.s.Candidates(domains, at))
	gone := map[rqv1.NamespacedName]bool{}
	for i := range t.events[:len(t.marks)] {
		e := &t.events[i]
		for j := range e.ousted {
			gone[e.ousted[j].Run] = true
		}
		if e.release != nil && !e.release.Kept {
			gone[e.release.Run] = true
		}
		if a := e.ahead; a != nil && !at.Before(a.Shielded) && slices.ContainsFunc(a.Holds, func(h resolver.Holding) bool {
			domain, _, _ := t.s.Fleet.Domain(h.Node)
			return domains[domain]
		}) {
			out = append(out, resolver.Candidate{Run: a.Run, Owner: a.Owner, Rest: a.Holds, Ticket: !a.Spared})
		}
	}
	return slices.DeleteFunc(out, func(c resolver.Candidate) bool { return gone[c.Run] })
}

// after returns the Runs ahead that have started by now, at an instant, and for which others have gone, unless the Run
// would start without that too: in some domains, if any are given, and once those have gone who are cut for it. Then it
// returns where: a promise that does without them lies on nobody's nodes who goes for them.
func (t *timeline) after(at time.Time, domains map[string]bool, cut []resolver.Holding) (on []rqv1.NamespacedName,
	without []plan.Assignment) {
	now := len(t.marks)
	for i := range t.events[:now] {
		if e := &t.events[i]; len(e.ousted) > 0 {
			on = append(on, e.ahead.Run)
		}
	}
	if len(on) == 0 {
		return nil, nil
	}
	u := t.uncut(t.s.Now, t.bare)
	u.seek(now)
	w := feasibility{t.s.Fleet, u.attempt(at).Within(domains)}
	w.Free(cut)
	if w.Fits() {
		on = nil
		without, _ = w.attempt.Place(t.s.Fleet)
	}
	w.Hold(cut)
	u.rewind()
	t.seek(now)
	return on, without
}

// record notes where the Run is going to be and who is going to pay.
func (p *Promise) record(assignments []plan.Assignment, gpus int) {
	nodes, payers := map[string]resolver.Holding{}, map[budget.Key]int{}
	for _, a := range assignments {
		at := nodes[a.Node]
		nodes[a.Node] = resolver.Holding{Node: a.Node, GPUs: at.GPUs + gpus, Beside: at.Beside.Plus(a.Beside)}
		payers[a.Payer] += gpus
		as := Paid{Payer: a.Payer, Relation: a.Relation, Spare: a.Spare}
		i := slices.IndexFunc(p.Paid, func(o Paid) bool { o.GPUs = 0; return o == as })
		if i < 0 {
			i = len(p.Paid)
			p.Paid = append(p.Paid, as)
		}
		p.Paid[i].GPUs += gpus
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		p.Nodes = append(p.Nodes, nodes[node])
	}
	keys := slices.SortedFunc(maps.Keys(payers), func(x, y budget.Key) int {
		return cmp.Or(strings.Compare(x.Budget, y.Budget), strings.Compare(x.Envelope, y.Envelope))
	})
	for _, k := range keys {
		p.Payers = append(p.Payers, payingEnvelope(k, payers[k]))
	}
}
