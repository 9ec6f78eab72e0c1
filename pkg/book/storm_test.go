package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// during lets time go by. Windows open, and Runs get on with their work.
func (s *storm) during(d time.Duration) {
	window, ok := s.Book.Budgets.NextWindow(s.Now)
	for _, run := range s.Runs {
		if run.Status.Phase == rqv1.RunRunning {
			s.worked[run.UID] += d
		}
	}
	if s.partly() && d > gangDeadline/2 {
		s.disturb() // a gang that takes so long to start is given up
	}
	s.Book.TakeIn()
	s.Pass(d)
	s.Book.TakeIn()
	if ok && !window.After(s.Now) {
		s.Book.WindowPassed()
	}
	s.Book.Budgets.RefreshBudgets(s.Now)
	s.EndPods()
}

// partly reports whether a gang that has not started holds Leases.
func (s *storm) partly() bool {
	return slices.ContainsFunc(s.OpenLeases(), func(l *rqv1.Lease) bool {
		run := s.Runs[l.Spec.RunRef.Name]
		return run != nil && run.UID == l.Spec.RunRef.UID && run.Status.Phase == rqv1.RunPending
	})
}

// submitAnything submits a Run of a random shape that may be bounded, and safe to requeue.
func (s *storm) submitAnything(t *rapid.T) {
	owner := rapid.SampledFrom([]rqv1.Owner{"org:a", "org:b", "org:c"}).Draw(t, "owner")
	runtime := &rqv1.RunRuntime{}
	if rapid.IntRange(0, 2).Draw(t, "checkpoint") > 0 {
		runtime.Checkpoint = &metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 4).Draw(t, "interval")) * time.Minute}
	}
	if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
		runtime.MaxDuration = &metav1.Duration{
			Duration: time.Duration(rapid.IntRange(1, 600).Draw(t, "maxDuration")) * time.Second}
	}
	if s.shifts {
		again(time.Duration(rapid.IntRange(20, 120).Draw(t, "shift")) * time.Second)(&rqv1.RunSpec{Runtime: runtime})
	}
	grace := func(*rqv1.RunSpec) {}
	if rapid.Bool().Draw(t, "template") {
		grace = patient(rapid.SampledFrom(graces).Draw(t, "grace"))
	}
	dueAny(t, runtime)
	s.submitAny(t, owner, func(r *rqv1.RunSpec) { r.Runtime = runtime }, grace)
}

func (s *storm) budgetAny(t *rapid.T, name string) {
	s.setBudget(name, rqv1.Owner("org:"+name), rapid.IntRange(1, 4).Draw(t, "budget of "+name)*8)
	if rapid.IntRange(0, 4).Draw(t, "window") == 0 {
		b := s.Budgets[name].DeepCopy()
		opens := metav1.NewTime(s.Now.Add(time.Duration(rapid.IntRange(-100, 400).Draw(t, "opens")) * time.Second))
		b.Spec.Envelopes[0].Start = &opens
		b.Generation = int64(s.NextUID)
		s.NextUID++
		s.SetBudget(b)
	}
	s.divideAny(t, name)
	s.disturb()
}

// calm lets everybody finish, whoever still comes to their turn.
func (s *storm) calm() {
	// Until then a gang that is stuck may have to be given up, also by a clock that was set back, and one that other rules
	// have refused again and again rests for more than five minutes.
	enough := 3 * time.Minute
	if s.shifts {
		enough = time.Minute // whose pods take their time to end every so often come to it late
	}
	quiet := slices.MaxFunc([]time.Time{s.Now, s.disturbed}, time.Time.Compare).Add(9 * gangDeadline)
	for range 400 {
		s.work()
		s.checkPromises()
		busy := s.Ends.Len() > 0 || s.Now.Before(quiet)
		for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
			if run := s.Runs[name]; run.Status.Phase == rqv1.RunRunning {
				if busy = true; s.worked[run.UID] >= enough {
					s.finish(name)
				}
			}
		}
		next, due := s.Book.NextDue()
		if !busy && !due {
			return
		}
		step := 20 * time.Second
		if due && next.Before(s.Now.Add(step)) {
			step = max(0, next.Sub(s.Now))
		}
		if s.Ends.Len() > 0 {
			step = min(step, time.Second)
		}
		s.during(step)
	}
	for _, name := range s.theirRuns() {
		s.t.Logf("%s%v", s.describe(name), s.Book.Refusal(s.Runs[name].UID))
	}
	s.t.Fatalf("Runs do not come to an end:\n%s", s.story())
}

// addTo adds what has been counted to what was before.
func (s *storm) addTo(total map[string]int) {
	for what, n := range s.tally {
		total[what] += n
	}
}

// story tells how Runs and Reservations stand, for failures.
func (s *storm) story() string {
	out := s.Now.String() + "\n"
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		p := s.Book.Prospect(s.Runs[name].UID)
		out += fmt.Sprintf("%s %s %s worked %s promise %+v\n", name, s.Runs[name].Status.Phase, s.Runs[name].Status.Message,
			s.worked[s.Runs[name].UID], p.Promise)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Reservations)) {
		r := s.Reservations[name]
		out += fmt.Sprintf("%s %s %s %s\n", name, r.Status.State, r.Status.Reason, r.Spec.EarliestStart)
	}
	return out
}

// TestStorms lets Runs reserve and be cut while anything may happen, in any order, and asserts that nobody is cut in
// vain, twice or unfairly, that what is published holds, and that in the end everybody who can start has.
func TestStorms(t *testing.T) {
	total := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		s := newStorm(w)
		w.forgetful(t)
		w.asks(rapid.Bool().Draw(t, "rules are asked"))
		w.zonedAny(t)
		w.spreadTheirsAny(t)
		w.nodesAny(t)
		if rapid.IntRange(0, 3).Draw(t, "taints") == 0 {
			w.tolerating()
			w.taint("n0")
		}
		for _, name := range []string{"a", "b", "c"} {
			s.budgetAny(t, name)
		}
		s.shifts = rapid.IntRange(0, 3).Draw(t, "shifts") == 0
		s.during(time.Second)
		for range 3 {
			s.submitAnything(t)
			s.work()
		}
		s.during(time.Second)
		actions := s.quietActions()
		if rapid.Bool().Draw(t, "wild") {
			maps.Copy(actions, s.wildActions())
		}
		if rapid.Bool().Draw(t, "suspended") {
			maps.Copy(actions, s.suspendActions(s.disturb))
		}
		if rapid.Bool().Draw(t, "rough") {
			maps.Copy(actions, s.clusterActions())
		}
		if rapid.Bool().Draw(t, "others have a say") {
			maps.Copy(actions, s.otherActions())
		}
		if rapid.Bool().Draw(t, "braked") {
			maps.Copy(actions, s.brakeActions())
			maps.Copy(actions, s.holdActions())
			if limit := rapid.Int32Range(0, 3).Draw(t, "cuts an hour"); limit > 0 {
				s.limit = &limit
				s.Book.LimitCuts(limit)
			}
		}
		if rapid.Bool().Draw(t, "drained") {
			maps.Copy(actions, s.drainActions())
		}
		if rapid.Bool().Draw(t, "kubelets have a say") {
			maps.Copy(actions, s.kubeletActions(s.disturb))
		}
		if rapid.Bool().Draw(t, "mixed") {
			maps.Copy(actions, s.mixedActions())
		}
		s.few(t, actions)
		t.Repeat(actions)
		s.serveAgain()
		if s.resumeAll() {
			s.disturb()
		}
		s.relent()
		s.release()
		s.Faults.Drop(sim.Crash)
		s.calm()
		w.check()
		w.checkSettled()
		for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
			w.DeleteRun(name)
		}
		s.work()
		if s.Ends.Len() > 0 {
			s.passes(longestGrace)
		}
		if remains := s.Book.Remains(); len(remains) > 0 {
			t.Fatalf("all Runs are gone, and the book still knows: %v", remains)
		}
		s.addTo(total)
	})
	t.Log(total)
}

// turn has time go by until the next Run's turn comes.
func (s *storm) turn(*rapid.T) {
	s.step(s.work)
	if next, ok := s.Book.NextDue(); ok {
		s.during(max(0, next.Sub(s.Now)))
	}
	s.step(s.work)
}

// quietActions are what may always happen.
func (s *storm) quietActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit": s.submitAnything,
		"work":   func(*rapid.T) { s.step(s.work) },
		"turn":   s.turn,
		"another turn": func(t *rapid.T) {
			s.submitAnything(t)
			s.turn(t)
		},
		"turn with a crash": func(t *rapid.T) {
			s.step(s.work)
			s.dies(rapid.IntRange(0, 12).Draw(t, "writes"), sim.All)
			s.turn(t)
		},
		"reconcile": func(t *rapid.T) {
			if name, ok := pick(t, "run", s.Live()); ok {
				s.step(func() { s.reconcile(name) })
			}
		},
		"cycles": func(t *rapid.T) {
			for _, uid := range s.SortedPods() {
				s.cycle(uid)
			}
		},
		"bind": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.Bindings()); ok {
				s.step(func() { s.Bind(uid, sim.Effect(rapid.IntRange(0, 2).Draw(t, "outcome"))) })
			}
		},
		"grow":    func(*rapid.T) { s.grow() },
		"desire":  s.desireAny,
		"deliver": func(*rapid.T) { s.Deliver() },
		"due":     func(*rapid.T) { s.Book.Due(s.Now) },
		"refresh": func(*rapid.T) { s.refresh() },
		"pass":    func(t *rapid.T) { s.during(time.Duration(rapid.IntRange(1, 40000).Draw(t, "ms")) * time.Millisecond) },
		"long":    func(t *rapid.T) { s.during(time.Duration(rapid.IntRange(30, 200).Draw(t, "seconds")) * time.Second) },
		"fault":   s.faultAny,
		"crash":   func(*rapid.T) { s.restart() },
		"still":   s.still,
		"fuse":    func(t *rapid.T) { s.dies(rapid.IntRange(0, 12).Draw(t, "writes"), sim.All) },
		"add node": func(t *rapid.T) {
			if s.Nodes["n1"] == nil {
				s.addNode("n1", "d0")
				s.disturb()
			}
		},
		"": func(*rapid.T) { s.check(); s.checkRecords(); s.checkCut() },
	}
}

// wildActions are those that may keep a Run from starting for which others were cut.
func (s *storm) wildActions() map[string]func(*rapid.T) {
	disturbing := func(act func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			act(t)
			s.disturb()
		}
	}
	return map[string]func(*rapid.T){
		"end pod": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.SortedPods()); ok && s.Pods[uid].Status.Phase == corev1.PodRunning {
				s.EndPod(uid, rapid.SampledFrom([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodSucceeded,
					corev1.PodFailed}).Draw(t, "phase"))
				s.disturb()
			}
		},
		"turn out pod": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.SortedPods()); ok && s.Pods[uid].Status.Phase == corev1.PodRunning {
				s.Evict(uid, "NodeShutdown")
				s.disturb()
			}
		},
		"delete pod": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.SortedPods()); ok {
				s.DeletePod(uid)
				s.disturb()
			}
		},
		"delete pod while rules are asked": func(t *rapid.T) {
			s.Meanwhile = func() {
				if uid, ok := pick(t, "pod", s.SortedPods()); ok {
					s.DeletePod(uid)
					s.disturb()
				}
			}
		},
		"lose node while rules are asked": func(t *rapid.T) {
			s.Meanwhile = func() {
				if name, ok := pick(t, "node", slices.Sorted(maps.Keys(s.Nodes))); ok {
					s.Lose(name)
					s.disturb()
				}
			}
		},
		"vanish":        disturbing(s.vanishAny),
		"group anew":    disturbing(s.anewAny),
		"group smaller": disturbing(s.smallerAny),
		"group resized": disturbing(s.resizeAny),
		"delete run": func(t *rapid.T) {
			if name, ok := pick(t, "run", slices.Sorted(maps.Keys(s.Runs))); ok {
				s.DeleteRun(name)
				s.disturb()
			}
		},
		"remove node": func(*rapid.T) {
			if s.Nodes["n1"] != nil {
				s.RemoveNode("n1")
				s.disturb()
			}
		},
		"lose nodes": disturbing(s.loseAny),
		"forgive":    disturbing(s.forgiveAny),
		"sign":       disturbing(s.showAny),
		"device":     disturbing(s.breakAny),
		"hang": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.Ends.Keys()); ok {
				if until := s.Now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second); until.After(
					s.Ends.At(uid)) {
					s.Ends.Set(uid, until)
				}
				s.disturb()
			}
		},
		"delete reservation": func(t *rapid.T) {
			if name, ok := pick(t, "reservation", slices.Sorted(maps.Keys(s.Reservations))); ok {
				s.remove(name)
				s.disturb()
			}
		},
		"bystander": s.bystandAny,
		"class":     s.classAny,
		"budget":    func(t *rapid.T) { s.budgetAny(t, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")) },
		"clock":     s.jump,
	}
}
