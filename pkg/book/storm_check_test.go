package book_test

import (
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// journal is what has happened in a storm.
type journal struct {
	// judged are the instants of the decisions that have been looked at, by Reservation, and disturbed is when something
	// last happened that may keep a decision from being carried out.
	judged    map[types.UID]time.Time
	disturbed time.Time
	changes   int
	// advised are those of judged in which rules that plans do not know may have had a say.
	advised map[types.UID]bool
	// cutters tells which Runs a Run was cut for, and until when those are shielded from it; shielded until when a Run is
	// not cut by anybody.
	cutters  map[types.UID]map[types.UID]time.Time
	shielded map[types.UID]time.Time
	// cutAt tells when it was last decided that a Run is cut.
	cutAt  map[types.UID]time.Time
	worked map[types.UID]time.Duration
	tally  map[string]int
}

func newJournal() journal {
	return journal{judged: map[types.UID]time.Time{}, advised: map[types.UID]bool{},
		cutters:  map[types.UID]map[types.UID]time.Time{},
		shielded: map[types.UID]time.Time{}, cutAt: map[types.UID]time.Time{},
		worked: map[types.UID]time.Duration{}, tally: map[string]int{}}
}

// disturb notes that something has happened which nobody could foresee.
func (s *storm) disturb() {
	if s.Now.After(s.disturbed) {
		s.disturbed = s.Now
	}
	s.changes++
}

// judge looks at what has just been decided.
func (s *storm) judge() {
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		run := s.Runs[name]
		a, r := s.Book.Decided(run.UID), s.Book.Prospect(run.UID).Reservation
		if a == nil || a.Failed || r == nil || s.judged[r.UID].Equal(a.At) {
			continue
		}
		s.judged[r.UID] = a.At
		s.tally["decided"]++
		s.advised[r.UID] = s.asked(run)
		s.judgeBrake(run)
		for _, wrong := range s.needless(run) {
			s.t.Fatalf("R19: what was decided for %s at %s: %s", name, s.Now, wrong)
		}
		for i := range a.Cuts {
			s.judgeCut(run, a, &a.Cuts[i])
		}
	}
}

// asked reports whether rules that plans do not know may have had a say in what is decided for a Run.
func (s *storm) asked(run *rqv1.Run) bool {
	t := run.Spec.Template
	own := t != nil && (t.Spec.Affinity != nil || len(t.Spec.Volumes)+len(t.Spec.TopologySpreadConstraints) > 0)
	own = own || run.Spec.Theirs() && s.controllers.spread != nil
	return s.Checks && (own || len(s.Rejects) > 0 || s.Turns != nil)
}

// needless lists what is wrong with the cuts that were decided on for a Run, by what plans know: other rules that were
// asked may have it need more.
func (s *storm) needless(run *rqv1.Run) []string {
	if s.asked(run) {
		return nil
	}
	return s.Book.Needless(run.UID)
}

func (s *storm) judgeCut(run *rqv1.Run, a *book.Activation, c *rqv1.Cut) {
	s.tally["cut "+string(c.Action)]++
	if c.Action == rqv1.CutReturn {
		victim := s.Runs[c.Run.Name]
		if victim == nil || c.Width == nil || *c.Width < victim.Spec.Resources.TotalGPUs {
			s.t.Fatalf("R23: %s is to give back what is its own: %+v", c.Run.Name, c)
		}
		return // no shield is for that
	}
	if until := s.shielded[c.UID]; until.After(a.At) {
		s.t.Fatalf("R22: %s is cut at %s for %s and is shielded until %s", c.Run.Name, a.At, run.Name, until)
	}
	if until := s.cutters[run.UID][c.UID]; until.After(a.At) {
		s.t.Fatalf("R22: %s cuts %s at %s, which has cut it and is shielded from it until %s", run.Name, c.Run.Name, a.At,
			until)
	}
}

// started notes a Run that starts, and until when it is not cut if others were cut for it or it has been drawn before.
func (s *storm) started(next *rqv1.Run) {
	was := s.Runs[next.Name]
	s.reassured(was, next)
	s.timedOut(was, next)
	if now, before := next.Status.Width, was.Status.Width; now != nil && before != nil && now.Granted > before.Granted &&
		before.Granted > 0 {
		s.tally["grew"]++
	}
	if was.Status.Phase == rqv1.RunRunning || next.Status.Phase != rqv1.RunRunning {
		return
	}
	s.tally["started"]++
	delete(s.shielded, next.UID)
	for _, r := range s.Reservations {
		drawn := slices.ContainsFunc(r.Status.Cuts, func(c rqv1.Cut) bool {
			return c.UID == next.UID && c.Action == rqv1.CutLottery
		})
		if s.disturbed.After(s.Now) {
			continue // the clock was set back
		}
		cuts := !resolver.OnLoan(r.Status.ConflictSet) && slices.ContainsFunc(r.Status.Cuts, func(c rqv1.Cut) bool {
			return c.Action != rqv1.CutReturn
		})
		if drawn || cuts && r.Labels[rqv1.LabelRunUID] == string(next.UID) &&
			r.Status.State == rqv1.ReservationActivating {
			s.shielded[next.UID] = s.Now.Truncate(time.Second).Add(shieldIn(next))
		}
	}
}

// reassured asserts that a Run which runs is not told that it is safe while it is decided, or published, that it is
// cut.
func (s *storm) reassured(was, next *rqv1.Run) {
	safe := func(run *rqv1.Run) bool {
		c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionAtRisk)
		return c != nil && c.Reason == "Safe"
	}
	if !safe(next) || safe(was) || next.Status.Phase != rqv1.RunRunning {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		a := s.Book.Decided(s.Runs[name].UID)
		if a != nil && !a.Failed && slices.ContainsFunc(a.Cuts, func(c rqv1.Cut) bool {
			return c.UID == next.UID && c.Action.Cuts()
		}) {
			s.t.Fatalf("R18: %s is told that it is safe, and it is decided that it is cut for %s", next.Name, name)
		}
	}
	for _, c := range s.Book.CutsOf(next.UID) {
		if started, _ := next.StartedAt(); c.Action == rqv1.CutLottery && started.Before(c.At.Truncate(time.Second)) {
			s.t.Fatalf("R18: %s is told that it is safe, and it has been drawn: %+v", next.Name, c)
		}
	}
	s.tally["told that it is safe"]++
}

// shieldIn returns for how long a Run is shielded.
func shieldIn(run *rqv1.Run) time.Duration {
	if t := run.Spec.Runtime; t != nil && t.Checkpoint != nil {
		return t.Checkpoint.Duration
	}
	return activationShield
}

// tell notes how a Reservation goes on, and asserts that its record only grows.
func (s *storm) tell(was, r *rqv1.Reservation) {
	if was == nil {
		s.tally["reserved"]++
		return
	}
	if was.Ended() {
		s.t.Fatalf("Reservation %s has ended and is written again", r.Name)
	}
	revealed := r.Status.Lottery != nil && r.Status.Lottery.Nonce != ""
	if a := was.Status.ActivatedAt; a != nil {
		if diff := cmp.Diff(was.Status.ConflictSet, r.Status.ConflictSet); diff != "" || !a.Equal(r.Status.ActivatedAt) {
			s.t.Fatalf("Reservation %s was activated and changes:\n%s", r.Name, diff)
		}
		if was.Status.Lottery.Nonce != "" && !cmp.Equal([]any{was.Status.Lottery, was.Status.Cuts},
			[]any{r.Status.Lottery, r.Status.Cuts}) {
			s.t.Fatalf("Reservation %s was revealed and changes", r.Name)
		}
	}
	if c := was.Status.Lottery; c != nil && c.Commitment != "" && c.Commitment != r.Status.Lottery.Commitment {
		s.t.Fatalf("Reservation %s commits to another nonce", r.Name)
	}
	for i := range r.Status.Cuts {
		victim, cutter := r.Status.Cuts[i].UID, types.UID(r.Labels[rqv1.LabelRunUID])
		if at := r.Status.ActivatedAt.Time; at.After(s.cutAt[victim]) {
			s.cutAt[victim] = at
		}
		if r.Status.Cuts[i].Action == rqv1.CutReturn {
			continue
		}
		if s.cutters[victim] == nil {
			s.cutters[victim] = map[types.UID]time.Time{}
		}
		if run := s.Runs[r.Spec.RunRef.Name]; run != nil {
			s.cutters[victim][cutter] = r.Status.ActivatedAt.Add(shieldIn(run))
		}
	}
	if r.Ended() {
		s.tellEnd(r, revealed)
	}
}

// tellEnd asserts that what has cut others has also started its Run, unless something came between.
func (s *storm) tellEnd(r *rqv1.Reservation, revealed bool) {
	state := string(r.Status.State)
	if !revealed {
		s.tally[state+" early"]++
		return
	}
	s.tally[state+" after cuts"]++
	run := s.Runs[r.Spec.RunRef.Name]
	there := run != nil && string(run.UID) == r.Labels[rqv1.LabelRunUID]
	if r.Status.State == rqv1.ReservationCanceled && r.Status.Cause != rqv1.CanceledCalledOff &&
		len(r.Status.Cuts) > 0 && there && s.disturbed.Before(r.Status.ActivatedAt.Truncate(time.Millisecond)) {
		s.t.Fatalf("Reservation %s cut %v in vain: %s\n%s", r.Name, r.Status.Cuts, r.Status.Reason, s.describe(run.Name))
	}
}

// checkRecords asserts what holds of Reservations at every moment.
func (s *storm) checkRecords() {
	live := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Reservations)) {
		r := s.Reservations[name]
		run := r.Labels[rqv1.LabelRunUID]
		if !r.Ended() {
			if live[run] != "" {
				s.t.Fatalf("Run %s has two Reservations: %s and %s", r.Spec.RunRef.Name, live[run], name)
			}
			live[run] = name
		}
		switch l := r.Status.Lottery; {
		case l == nil:
		case l.Nonce != "":
			if wrong := resolver.Verify(r); len(wrong) > 0 {
				s.t.Fatalf("R21: the record of %s is not valid: %v\n%+v", name, wrong, r.Status)
			}
		case len(l.Draws) > 0 || len(r.Status.Cuts) > 0:
			s.t.Fatalf("R21: %s tells who is drawn before the nonce", name)
		}
	}
}

// checkCut asserts that what was closed as cut was held before that was decided.
func (s *storm) checkCut() {
	for name, l := range s.Leases {
		reason := l.Status.ClosureReason
		if reason != rqv1.ClosedRandomPreempt && reason != rqv1.ClosedDropSpare {
			continue
		}
		if at := s.cutAt[l.Spec.RunRef.UID]; !l.HeldSince().Before(at) {
			s.t.Fatalf("R19: Lease %s of %s is closed as %s, and nothing has cut it since: its Run was last cut at %s", name,
				l.Spec.Start, reason, at)
		}
	}
}

// checkPromises asserts what holds of Reservations once everybody has done their work.
func (s *storm) checkPromises() {
	for _, name := range slices.Sorted(maps.Keys(s.Reservations)) {
		r := s.Reservations[name]
		if r.Ended() {
			continue
		}
		run := s.Runs[r.Spec.RunRef.Name]
		if run == nil || string(run.UID) != r.Labels[rqv1.LabelRunUID] || run.Ended() {
			s.t.Fatalf("Reservation %s is %s and its Run is gone or has ended", name, r.Status.State)
		}
		if r.Status.State == rqv1.ReservationPending && run.Status.Phase == rqv1.RunRunning {
			s.t.Fatalf("Reservation %s waits and its Run runs", name)
		}
		if late := s.Now.Sub(r.Spec.EarliestStart.Time); r.Status.State == rqv1.ReservationPending && late > time.Second {
			p := s.Book.Prospect(run.UID)
			if p.Leaving > 0 || s.ending(run) || s.waitsForLosses(run) {
				continue // it has its places, and shards are leaving them; or its own pods leave, since it took too long to start
			}
			s.t.Fatalf("Reservation %s of %s is %s late: %+v %v\n%s\n%s", name, run.Status.Phase, late, p.Promise, p.Refusal,
				s.describe(run.Name), s.story())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		p := s.Book.Prospect(s.Runs[name].UID)
		if p.Promise != nil && p.Reservation == nil {
			s.t.Fatalf("%s is promised a start at %s and has no Reservation", name, p.Promise.At)
		}
	}
	if next, ok := s.Book.NextDue(); ok && !next.After(s.Now) {
		s.t.Fatalf("something is due since %s and it is %s", next, s.Now)
	}
}

// undisclosed returns what has been decided about what is published already and not revealed, by Reservation; nothing
// if something was decided that is not published at all, for that is forgotten by whoever comes after.
func (s *storm) undisclosed() map[string]*book.Activation {
	out := map[string]*book.Activation{}
	for _, name := range slices.Sorted(maps.Keys(s.Reservations)) {
		r := s.Reservations[name]
		run := s.Runs[r.Spec.RunRef.Name]
		if r.Status.ActivatedAt == nil && run != nil && s.Book.Prospect(run.UID).Activation != nil {
			return nil
		}
		if r.Status.State != rqv1.ReservationActivating || r.Status.Lottery.Nonce != "" || run == nil ||
			string(run.UID) != r.Labels[rqv1.LabelRunUID] {
			continue
		}
		out[name] = s.Book.Prospect(run.UID).Activation
	}
	return out
}

// compare asserts that a process decides what the one before it did.
func (s *storm) compare(before, after map[string]*book.Activation) {
	if s.Faults.Next(sim.Creations) == sim.Refused {
		return // what is kept for ranks whose pods the API server does not take is forgotten with the process
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		x, y := before[name], after[name]
		if s.advised[s.Reservations[name].UID] {
			continue // they are asked anew
		}
		if s.disturbed.Before(s.Reservations[name].Status.ActivatedAt.Truncate(time.Millisecond)) &&
			(y == nil || x != nil && !cmp.Equal([]any{x.Draws, x.Cuts}, []any{y.Draws, y.Cuts})) {
			s.t.Fatalf("R21: after a crash %s is decided otherwise:\n%+v\n%+v", name, x, y)
		}
		s.tally["crash between publish and reveal"]++
	}
}

// ending reports whether a pod of a Run has been told to go and has not gone.
func (s *storm) ending(run *rqv1.Run) bool {
	for _, uid := range s.Ends.Keys() {
		if pod := s.Pods[uid]; pod != nil && pod.Labels[rqv1.LabelRun] == run.Name {
			return true
		}
	}
	return false
}

// waitsForLosses reports whether a Run is held back by ranks that were lost, or by Leases of pods that end, as the
// process that decides just began.
func (s *storm) waitsForLosses(run *rqv1.Run) bool {
	within := map[string]time.Duration{
		"waiting until ranks that were lost, and Runs that were starting, have their places": lossesWithin,
		"waiting until the GPU leases of pods that end are closed":                           endsWithin,
	}
	return slices.ContainsFunc(s.PodsOf(run.Name), func(pod *corev1.Pod) bool {
		return s.Now.Before(s.tookOver.Add(within[s.Book.Gate(pod)]))
	})
}
