package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// check asserts the invariants that hold at every moment, whatever is under way.
func (w *world) check() {
	w.checkOrder()
	for name, run := range w.Runs {
		if held := w.Book.HeldForAbsent(run.UID); held > 0 && run.Status.HeldInVain.Rests(w.Now) {
			w.t.Fatalf("R46: %d places are held for absent pods of %s, which rests until %s", held, name,
				run.Status.HeldInVain.Until)
		}
	}
	held, runs := map[string]int{}, map[string]int{} // for all but shards, and for all that runs
	byPod := map[string]*rqv1.Lease{}
	domains := map[string]string{}
	for _, lease := range w.OpenLeases() {
		on := lease.Spec.Slice.Nodes[0]
		if lease.Spec.Slice.Role != rqv1.RoleBorrowed {
			held[on.Name] += int(on.GPUs)
		}
		if lease.Spec.Slice.Role != rqv1.RoleSpare {
			runs[on.Name] += int(on.GPUs)
		}
		if byPod[lease.Labels[rqv1.LabelPodUID]] != nil {
			w.t.Fatalf("I2: two open Leases for one pod: %s", lease.Name)
		}
		byPod[lease.Labels[rqv1.LabelPodUID]] = lease
		pod := w.Pods[types.UID(lease.Labels[rqv1.LabelPodUID])]
		freed := pod != nil && rank.Ended(pod) && pod.Labels[rqv1.LabelRun] == "" // its Lease is about to be closed
		if pod != nil && !freed && string(lease.Spec.Slice.Role) != pod.Labels[rqv1.LabelRole] {
			w.t.Fatalf("Lease %s of a pod that is %s has the role %s", lease.Name, pod.Labels[rqv1.LabelRole],
				lease.Spec.Slice.Role)
		}
		if node := w.Nodes[on.Name]; node != nil && !w.Lost(on.Name) && pod != nil && w.confined(lease) &&
			pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			group := fmt.Sprintf("%s/%d", lease.Spec.RunRef.UID, lease.Spec.GroupIndex)
			domain := w.domainOf(node)
			if domains[group] != "" && domains[group] != domain {
				w.t.Fatalf("I6: group %s lies in %s and %s", group, domains[group], domain)
			}
			domains[group] = domain
		}
	}
	usage := w.Book.Budgets.Usage()
	for payer, gpus := range w.ledgerUsage() {
		if usage[payer] < gpus {
			w.t.Fatalf("I8: %s pays for %d GPUs and %d are counted", payer, gpus, usage[payer])
		}
	}
	w.checkCaps()
	if runs := w.Book.Restless(); len(runs) > 0 {
		w.t.Fatalf("Runs that have ended are gone through, or others are not: %v", runs)
	}
	if runs := w.Book.Misfiled(); len(runs) > 0 {
		w.t.Fatalf("Runs that wait would not be found by what helps them: %v", runs)
	}
	if ranks := w.Book.PaidTwice(); len(ranks) > 0 {
		w.t.Fatalf("I8: the money of %v is kept twice", ranks)
	}
	for name := range w.Nodes {
		if gpus, has := max(held[name], runs[name]), w.sizeOf(name); gpus > has {
			w.t.Fatalf("I1: %d of %d GPUs of node %s are held, %d are in use", held[name], has, name, runs[name])
		}
	}
	for _, uid := range w.SortedPods() {
		pod := w.Pods[uid]
		lease := byPod[string(uid)]
		if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning &&
			(lease == nil || lease.Node() != pod.Spec.NodeName) {
			w.t.Fatalf("I2: pod %s runs on %s without a Lease there", pod.Name, pod.Spec.NodeName)
		}
	}
}

// confined reports whether a Lease's group lies in one domain.
func (w *world) confined(lease *rqv1.Lease) bool {
	run := w.Runs[lease.Spec.RunRef.Name]
	return run != nil && run.UID == lease.Spec.RunRef.UID && run.Spec.Locality != nil
}

// ledgerUsage adds up what the open Leases charge to each envelope.
func (w *world) ledgerUsage() map[budget.Key]int {
	usage := map[budget.Key]int{}
	for _, lease := range w.OpenLeases() {
		if lease.Spec.Slice.Role == rqv1.RoleBorrowed {
			continue
		}
		usage[budget.Key{Budget: lease.Spec.Payer.Budget, Envelope: lease.Spec.PaidByEnvelope}] += int(
			lease.Spec.Slice.Nodes[0].GPUs)
	}
	return usage
}

// submitAny submits a Run of a small random shape.
func (w *world) submitAny(t *rapid.T, owner rqv1.Owner, changes ...func(*rqv1.RunSpec)) {
	name := fmt.Sprintf("run%d", rapid.IntRange(0, 4).Draw(t, "name"))
	if w.Runs[name] != nil || slices.Contains(w.Names(), name) {
		return
	}
	groups, pods := rapid.IntRange(1, 3).Draw(t, "groups"), rapid.IntRange(1, 3).Draw(t, "pods per group")
	size, spares := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "GPUs per pod"),
		rapid.IntRange(0, min(2, pods)).Draw(t, "spares per group")
	changes = append(changes, of(rapid.SampledFrom([]string{"", "", "low", "high", "gone"}).Draw(t, "class")))
	if rapid.IntRange(0, 3).Draw(t, "expires") == 0 {
		changes = append(changes, expiring(rapid.SampledFrom([]int32{0, 1, 30, 300}).Draw(t, "ttl")))
	}
	part := pods // what widths are made of
	if rapid.Bool().Draw(t, "without groups") {
		part = 1
		changes = append(changes, ungrouped)
	}
	if rapid.IntRange(0, 2).Draw(t, "asks for more than GPUs") == 0 {
		changes = append(changes, w.besideAny(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "opportunistic") == 0 {
		w.submitWithSpares(name, owner, groups, pods, size, 0, append(changes, ungrouped, opportunistic)...)
		return
	}
	if rapid.IntRange(0, 3).Draw(t, "others make its pods") == 0 {
		w.submitWithSpares(name, owner, groups, pods, size, spares, append(changes, lateAny(t, groups*pods))...)
		return
	}
	if w.Checks && rapid.IntRange(0, 2).Draw(t, "apart") == 0 {
		changes = append(changes, apart)
	}
	if w.Checks && rapid.IntRange(0, 2).Draw(t, "spread") == 0 {
		changes = append(changes, spreadAny(t))
	}
	if w.Zone != nil && rapid.Bool().Draw(t, "shares a volume") {
		changes = append(changes, sharing)
	}
	if rapid.Bool().Draw(t, "malleable") {
		changes = append(changes, elasticAny(t, groups*pods/part, part)...)
	}
	if rapid.IntRange(0, 3).Draw(t, "the fleet says the size") == 0 {
		changes = append(changes, func(s *rqv1.RunSpec) { s.Resources.GPUsPerPod = nil })
	}
	w.submitWithSpares(name, owner, groups, pods, size, spares, changes...)
}

// cutAny has a Reservation cut a Run that runs, in a random way.
func (w *world) cutAny(t *rapid.T) {
	var running []string
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		if w.Runs[name].Status.Phase == rqv1.RunRunning && !w.Runs[name].Spec.Opportunistic {
			running = append(running, name)
		}
	}
	name, ok := pick(t, "victim", running)
	if !ok {
		return
	}
	run, cut := w.Runs[name], rqv1.Cut{Run: rqv1.NamespacedName{Name: name}, GPUs: 1}
	cut.Action = rapid.SampledFrom([]rqv1.CutAction{rqv1.CutLottery, rqv1.CutDropSpare, rqv1.CutShrink}).Draw(t, "action")
	switch m := run.Spec.Malleable; {
	case cut.Action == rqv1.CutDropSpare:
		cut.Spares = []int32{rapid.Int32Range(0, 2).Draw(t, "spare")}
	case cut.Action == rqv1.CutShrink && m == nil:
		return
	case cut.Action == rqv1.CutShrink:
		width := m.MinTotalGPUs + m.StepGPUs*rapid.Int32Range(0, (m.MaxTotalGPUs-m.MinTotalGPUs)/m.StepGPUs).Draw(t, "width")
		cut.Width = &width
	}
	w.activation = w.activating(cut)
	w.Book.SetReservation(w.activation)
}

func pick[K ~string](t *rapid.T, what string, from []K) (K, bool) {
	if len(from) == 0 {
		return "", false
	}
	return rapid.SampledFrom(from).Draw(t, what), true
}

// happenings are what may happen in any order; the invariants are checked after each.
func (w *world) happenings() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit": func(t *rapid.T) {
			owner := rapid.SampledFrom([]rqv1.Owner{"org:a", "org:b"}).Draw(t, "owner")
			runtime := &rqv1.RunRuntime{}
			if rapid.Bool().Draw(t, "checkpoint") {
				runtime.Checkpoint = &metav1.Duration{Duration: time.Minute}
			}
			dueAny(t, runtime)
			w.submitAny(t, owner, func(s *rqv1.RunSpec) { s.Runtime = runtime })
		},
		"reconcile": func(t *rapid.T) {
			if name, ok := pick(t, "run", w.Names()); ok {
				w.reconcile(name)
			}
		},
		"cycle": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", w.SortedPods()); ok {
				w.cycle(uid)
			}
		},
		"cycles": func(t *rapid.T) {
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
		},
		"bind": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", w.Bindings()); ok {
				w.Bind(uid, sim.Effect(rapid.IntRange(0, 2).Draw(t, "outcome")))
			}
		},
		"act":  func(*rapid.T) { w.Act() },
		"hang": func(*rapid.T) { w.unseen(w.Pass) },
		"pass": func(t *rapid.T) { w.Pass(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second) },
		"end pod": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", w.SortedPods()); ok && w.Pods[uid].Status.Phase == corev1.PodRunning {
				w.EndPod(uid, rapid.SampledFrom([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodSucceeded,
					corev1.PodFailed}).Draw(t, "phase"))
			}
		},
		"turn out pod": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", w.SortedPods()); ok && w.Pods[uid].Status.Phase == corev1.PodRunning {
				w.Evict(uid, "NodeShutdown")
			}
		},
		"delete pod": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", w.SortedPods()); ok {
				w.DeletePod(uid)
			}
		},
		"vanish": w.vanishAny,
		"delete run": func(t *rapid.T) {
			if name, ok := pick(t, "run", slices.Sorted(maps.Keys(w.Runs))); ok {
				w.DeleteRun(name)
			}
		},
		"add node": func(t *rapid.T) { w.addNode("n1", "d0") },
		"remove node": func(t *rapid.T) {
			if w.Nodes["n1"] != nil {
				w.RemoveNode("n1")
			}
		},
		"budget": func(t *rapid.T) {
			w.setBudget("a", "org:a", rapid.IntRange(4, 40).Draw(t, "budget of a"))
			w.divideAny(t, "a")
		},
		"lose nodes": w.loseAny,
		"forgive":    w.forgiveAny,
		"fuse":       func(t *rapid.T) { w.dies(rapid.IntRange(1, 8).Draw(t, "writes")-1, sim.ByControllers) },
		"fault":      w.faultAny,
		"crash":      func(*rapid.T) { w.crash() },
		"cut":        w.cutAny,
		"grow":       func(*rapid.T) { w.grow() },
		"fill":       func(*rapid.T) { w.Book.Fill(w.Now) },
		"round":      func(*rapid.T) { w.round() },
		"desire":     w.desireAny,
		"turn down":  w.turnDownAny,
		"bystander":  w.bystandAny,
		"unlabel":    w.unlabelAny,
		"release": func(*rapid.T) {
			if w.activation != nil {
				w.Book.DeleteReservation(w.activation)
				w.activation = nil
			}
		},
		"controller":    w.controlAny,
		"group anew":    w.anewAny,
		"group next":    w.nextAny,
		"group smaller": w.smallerAny,
		"group resized": w.resizeAny,
		"":              func(*rapid.T) { w.check() },
	}
}

// TestRandomHistories lets submissions, scheduling cycles, bindings, failures and restarts happen in any order, and
// asserts the invariants after every one of them; then lets everybody finish, and asserts that nothing is left half
// done and nobody waits for nothing.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.nodesAny(t)
		w.setBudget("a", "org:a", rapid.IntRange(4, 40).Draw(t, "budget of a"))
		w.setBudget("b", "org:b", rapid.IntRange(4, 40).Draw(t, "budget of b"))
		w.divideAny(t, "a")
		w.divideAny(t, "b")
		w.asks(rapid.Bool().Draw(t, "rules are asked"))
		w.zonedAny(t)
		w.spreadTheirsAny(t)
		w.forgetful(t)
		actions := w.happenings()
		if rapid.Bool().Draw(t, "rough") {
			maps.Copy(actions, w.clusterActions())
			maps.Copy(actions, w.holdActions())
		}
		if rapid.Bool().Draw(t, "others have a say") {
			maps.Copy(actions, w.otherActions())
		}
		if rapid.Bool().Draw(t, "suspended") {
			maps.Copy(actions, w.suspendActions(func() {}))
		}
		if rapid.Bool().Draw(t, "kubelets have a say") {
			maps.Copy(actions, w.kubeletActions(func() {}))
		}
		t.Repeat(actions)
		w.resumeAll()
		w.relent()
		w.mend()
		w.settle()
		w.check()
		w.checkSettled()
	})
}

// TestRandomBreaths does the same from where malleable Runs run, on room and money that come and go.
func TestRandomBreaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.fleet("d0", rapid.IntRange(1, 3).Draw(t, "nodes of d0"))
		w.fleet("d1", rapid.IntRange(1, 3).Draw(t, "nodes of d1"))
		w.setBudget("a", "org:a", rapid.IntRange(16, 64).Draw(t, "budget of a"))
		w.setBudget("b", "org:b", rapid.IntRange(16, 64).Draw(t, "budget of b"))
		w.divideAny(t, "a")
		w.divideAny(t, "b")
		spread := func(*rqv1.RunSpec) {}
		if w.asks(rapid.Bool().Draw(t, "rules are asked")); w.Checks && rapid.Bool().Draw(t, "spread") {
			spread = spreadAny(t)
		}
		w.submitWithSpares("run0", "org:a", 1, 2, 4, rapid.IntRange(0, 1).Draw(t, "spares"), elastic(2, 2), upTo(4), spread)
		w.submitWithSpares("run1", "org:b", 1, 3, 2, 0, ungrouped, elastic(1, 1), upTo(6), spread)
		w.round()
		w.round()
		w.forgetful(t)
		actions := w.happenings()
		if rapid.Bool().Draw(t, "rough") {
			maps.Copy(actions, w.clusterActions())
			maps.Copy(actions, w.holdActions())
		}
		if rapid.Bool().Draw(t, "others have a say") {
			maps.Copy(actions, w.otherActions())
		}
		if rapid.Bool().Draw(t, "suspended") {
			maps.Copy(actions, w.suspendActions(func() {}))
		}
		if rapid.Bool().Draw(t, "kubelets have a say") {
			maps.Copy(actions, w.kubeletActions(func() {}))
		}
		t.Repeat(actions)
		w.resumeAll()
		w.relent()
		w.mend()
		w.settle()
		w.check()
		w.checkSettled()
	})
}
