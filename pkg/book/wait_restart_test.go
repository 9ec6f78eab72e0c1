package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// waited is what becomes of a Run of which a rank waits for where it was: where its ranks are in the end, and after how
// many seconds what had last changed.
type waited struct {
	Ranks  map[string]string
	Phases map[string]rqv1.RunPhase
	After  map[string]int
}

// awaitedThrough has run0 run in two domains, in one of which a Run of lower priority of its owner fills the rest, and
// some of its ranks lose their places; it follows what comes of that while the process begins anew once.
func (w *world) awaitedThrough(happens func(w *world, second int), restart int) waited {
	w.class("high", 2000000)
	w.class("low", 1000000)
	w.fleet("d0", 3)
	w.fleet("d1", 3)
	w.setBudget("a", "org:a", 64)
	w.submitWithSpares("run0", "org:a", 2, 2, 8, 0, of("high"), checkpointed)
	w.rounds(4)
	w.running("run0", "although it fits")
	w.submitWithSpares("low", "org:a", 1, 1, 8, 0, of("low"))
	w.rounds(4)
	w.running("low", "although there is room")
	w.Pass(gangDeadline)
	out := waited{After: map[string]int{}}
	for second := range 110 {
		happens(w, second)
		if second == restart {
			w.crash()
		}
		w.rounds(1)
		now := waited{Ranks: w.placedOf("run0"), Phases: map[string]rqv1.RunPhase{}}
		for _, name := range w.Names() {
			now.Phases[name] = w.Runs[name].Status.Phase
			if now.Phases[name] != out.Phases[name] {
				out.After[name] = second
			}
		}
		for index, node := range now.Ranks {
			if node != out.Ranks[index] {
				out.After[index] = second
			}
		}
		out.Ranks, out.Phases = now.Ranks, now.Phases
	}
	return out
}

// besideLow returns a rank of run0 that has a place in the domain of low, or in the other.
func (w *world) besideLow(beside bool) string {
	domain := func(pod string) string { return w.Nodes[w.on(pod)].Labels["fabric.domain"] }
	if (domain("run0-0") == domain("low-0")) == beside {
		return "run0-1"
	}
	return "run0-3"
}

// about reports whether two things came of a wait within a few seconds.
var about = cmp.Comparer(func(x, y int) bool { return x-y <= 3 && y-x <= 3 })

// A process that begins anew while a rank waits for where it was changes neither where the rank goes, nor when.
func TestARestartChangesNothingOfAWait(t *testing.T) {
	cordons := func(until int, others func(*world, int)) func(*world, int) {
		node := ""
		return func(w *world, second int) {
			switch second {
			case 0:
				node = w.leavesCordoned(w.besideLow(true))
			case until:
				w.cordoned(node, false)
			}
			if others != nil {
				others(w, second)
			}
		}
	}
	lost := func(w *world, second int) {
		if second == 8 {
			w.Lose(w.on(w.besideLow(false)))
		}
	}
	vanishes := func(w *world, second int) {
		if second == 0 {
			w.Vanish(w.withGrace(w.pod(w.besideLow(true)), 60).UID)
		}
		lost(w, second)
	}
	both := func() func(*world, int) {
		nodes := map[string]string{}
		return func(w *world, second int) {
			switch second {
			case 0:
				ranks := []string{"run0-0", "run0-1", "run0-2", "run0-3"}
				for _, rank := range ranks {
					nodes[rank] = w.on(rank)
					w.cordoned(nodes[rank], true)
				}
				for _, rank := range ranks {
					w.evicted(rank)
				}
			case 20:
				w.cordoned(nodes["run0-3"], false)
			case 45:
				w.cordoned(nodes["run0-0"], false)
				w.cordoned(nodes["run0-1"], false)
			}
		}
	}
	for name, happens := range map[string]func() func(*world, int){
		"a pod vanishes":                func() func(*world, int) { return vanishes },
		"cordons of all nodes":          both,
		"a cordon that goes":            func() func(*world, int) { return cordons(40, nil) },
		"a cordon that stays":           func() func(*world, int) { return cordons(-1, nil) },
		"and another rank is lost":      func() func(*world, int) { return cordons(40, lost) },
		"it stays, and another is lost": func() func(*world, int) { return cordons(-1, lost) },
	} {
		t.Run(name, func(t *testing.T) {
			var want *waited
			plays(t, 12, func(t *rapid.T) {
				at := rapid.IntRange(1, 80).Draw(t, "restart")
				if want == nil {
					without := newWorld(t).awaitedThrough(happens(), -1)
					want = &without
				}
				w := newWorld(t)
				got := w.awaitedThrough(happens(), at)
				for _, of := range [][2]string{{"0", "1"}, {"2", "3"}} {
					first, second := w.Nodes[got.Ranks[of[0]]], w.Nodes[got.Ranks[of[1]]]
					if first == nil || second == nil || first.Labels["fabric.domain"] != second.Labels["fabric.domain"] {
						t.Fatalf("with a restart after %d s its ranks are on %v", at, got.Ranks)
					}
				}
				if diff := cmp.Diff(*want, got, about); diff != "" {
					t.Fatalf("with a restart after %d s (-without +with):\n%s", at, diff)
				}
			})
		})
	}
}
