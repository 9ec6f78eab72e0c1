package book_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// broken is the condition that is a sign of loss in these worlds.
const broken = corev1.NodeConditionType("Broken")

// brakes are what administrators, and the scheduler itself, hold back.
type brakes struct {
	cuts brake.State
	// limit is cutsPerHour; nil for none.
	limit *int32
	// signs are the nodes that show signs of loss and are not taken for lost.
	signs map[string]bool
}

// engage tells a process that starts how the brakes stand.
func (k *brakes) engage(b *book.Book) {
	b.SetBrake(k.cuts)
	b.HoldBack(k.signs)
	if k.limit != nil {
		b.LimitCuts(*k.limit)
	}
}

// brakeActions are what brakes cuts.
func (s *storm) brakeActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"pause":  func(*rapid.T) { s.pause(true) },
		"resume": func(*rapid.T) { s.pause(false) },
		"call off": func(t *rapid.T) {
			if name, ok := pick(t, "reservation", s.liveReservations(func(*rqv1.Reservation) bool { return true })); ok {
				s.callOff(name)
			}
		},
		"call off amid": func(t *rapid.T) {
			s.turn(t)
			amid := func(r *rqv1.Reservation) bool { return r.Status.State == rqv1.ReservationActivating }
			if name, ok := pick(t, "activating", s.liveReservations(amid)); ok {
				s.callOff(name)
			}
		},
		"turn and call off": s.callOffAtTurn,
	}
}

// pause pauses cuts, or resumes them.
func (s *storm) pause(paused bool) {
	s.cuts.Paused = paused
	s.Book.SetBrake(s.cuts)
}

// callOff calls an activation off.
func (s *storm) callOff(name string) {
	s.cuts.CalledOff = maps.Clone(s.cuts.CalledOff)
	if s.cuts.CalledOff == nil {
		s.cuts.CalledOff = map[types.NamespacedName]brake.CallOff{}
	}
	s.cuts.CalledOff[types.NamespacedName{Namespace: "ns", Name: name}] = brake.CallOff{UID: s.Reservations[name].UID}
	s.Book.SetBrake(s.cuts)
	s.tally["called off "+string(s.Reservations[name].Status.State)]++
	s.disturb()
}

// callOffAtTurn has a Run's turn come, be decided and published as far as chance has it, and be called off then.
func (s *storm) callOffAtTurn(t *rapid.T) {
	s.step(s.work)
	if next, ok := s.Book.NextDue(); ok {
		s.during(max(0, next.Sub(s.Now)))
	}
	s.Book.Due(s.Now)
	s.Act()
	for _, uid := range s.SortedPods() {
		s.cycle(uid)
	}
	for range rapid.IntRange(0, 6).Draw(t, "reconciles") {
		if name, ok := pick(t, "run", s.Live()); ok {
			s.step(func() { s.reconcile(name) })
		}
		for s.Delivers() {
			s.Deliver()
		}
	}
	if name, ok := pick(t, "reservation", s.liveReservations(func(r *rqv1.Reservation) bool {
		return r.Status.State == rqv1.ReservationActivating
	})); ok {
		s.callOff(name)
	}
	s.step(s.work)
}

// liveReservations returns the names of Reservations that have not ended.
func (s *storm) liveReservations(also func(*rqv1.Reservation) bool) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Reservations)) {
		if !s.Reservations[name].Ended() && also(s.Reservations[name]) {
			out = append(out, name)
		}
	}
	return out
}

// holdActions are what holds the loss of nodes back.
func (w *world) holdActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"hold back": func(t *rapid.T) {
			next := map[string]bool{}
			for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
				if !w.Lost(name) && (w.signs[name] || rapid.IntRange(0, 2).Draw(t, name) == 0) {
					next[name] = true
				}
			}
			w.holdBack(next)
		},
		"let go": func(*rapid.T) { w.holdBack(nil) },
		"lose what is held back": func(*rapid.T) {
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(w.signs)), w.Lost)
			w.Book.SetLosing(names, true)
			w.holdBack(nil)
			w.Lose(names...)
		},
	}
}

// holdBack has some nodes, and no others, show signs of loss that are held back.
func (w *world) holdBack(next map[string]bool) {
	was := w.signs
	w.signs = next
	both := maps.Clone(next)
	if both == nil {
		both = map[string]bool{}
	}
	maps.Copy(both, was)
	w.Book.HoldBack(both)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if node := w.Nodes[name]; node != nil {
			node = node.DeepCopy()
			node.Status.Conditions = nil
			if next[name] {
				node.Status.Conditions = []corev1.NodeCondition{{Type: broken, Status: corev1.ConditionTrue}}
			}
			w.SetNode(node)
		}
	}
	w.Book.HoldBack(next)
	w.unforeseen()
}

// release ends all that brakes cuts. What configuration says changes with the process.
func (s *storm) release() {
	s.cuts = brake.State{CalledOff: s.cuts.CalledOff}
	s.Book.SetBrake(s.cuts)
	if s.limit != nil {
		s.limit = nil
		s.restart()
	}
}

// judgeBrake asserts that what has just been decided was not braked. What is on loan is given back all the same.
func (s *storm) judgeBrake(run *rqv1.Run) {
	onLoan := resolver.OnLoan(s.Book.Decided(run.UID).Conflicts)
	if says := s.cuts.Says(); says != "" && !onLoan {
		s.t.Fatalf("R36: others are cut for %s at %s, and %s", run.Name, s.Now, says)
	}
	for _, r := range s.Reservations {
		if r.Labels[rqv1.LabelRunUID] == string(run.UID) && r.Status.CalledOff != "" && s.disturbed.Before(s.Now) &&
			s.Now.Before(r.Status.EndedAt.Add(reservationLead-time.Second)) {
			s.t.Fatalf("R36: others are cut for %s at %s, which was called off at %s", run.Name, s.Now, r.Status.EndedAt)
		}
	}
}
