package book_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// forgetful has statuses of Runs tell of few deaths, perhaps, so that they are often full.
func (w *world) forgetful(t *rapid.T) {
	w.Rules.MostDeaths = rapid.SampledFrom([]int{0, 2}).Draw(t, "most deaths")
	w.Boot(nil)
}

// dueAny has the ranks of a Run have to be ready in time, perhaps.
func dueAny(t *rapid.T, runtime *rqv1.RunRuntime) {
	if rapid.IntRange(0, 2).Draw(t, "due") == 0 {
		runtime.StartupDeadline = &metav1.Duration{
			Duration: time.Duration(rapid.IntRange(60, 200).Draw(t, "startupDeadline")) * time.Second}
	}
}

// beganPods returns the pods that run and have not been told to go.
func (w *world) beganPods() []types.UID {
	return slices.DeleteFunc(w.SortedPods(), func(uid types.UID) bool {
		pod := w.Pods[uid]
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || w.Lost(pod.Spec.NodeName)
	})
}

// kubeletActions are what kubelets say of pods that run: a world is disturbed by it.
func (w *world) kubeletActions(disturb func()) map[string]func(*rapid.T) {
	some := func(do func(types.UID)) func(*rapid.T) {
		return func(t *rapid.T) {
			if uid, ok := pick(t, "pod", w.beganPods()); ok {
				do(uid)
				disturb()
			}
		}
	}
	return map[string]func(*rapid.T){
		"start again": some(w.StartAgain),
		"start all again": func(t *rapid.T) {
			run, _ := pick(t, "run", slices.Sorted(maps.Keys(w.Runs)))
			for _, uid := range w.beganPods() {
				if w.Pods[uid].Labels[rqv1.LabelRun] == run {
					w.StartAgain(uid)
				}
			}
			disturb()
		},
		"ready":     some(func(uid types.UID) { w.SetReady(uid, true) }),
		"not ready": some(func(uid types.UID) { w.SetReady(uid, false) }),
		"all ready": func(*rapid.T) { w.allReady() },
		"slow": func(t *rapid.T) {
			w.Slow = rapid.Bool().Draw(t, "slow")
			w.controllers.inOrder = w.Slow
			disturb()
		},
	}
}

// allReady has all pods be ready that run, and those that come.
func (w *world) allReady() {
	w.Slow, w.controllers.inOrder = false, false
	for _, uid := range w.beganPods() {
		w.SetReady(uid, true)
	}
}

// checkIncidents asserts that no incident lasts where all ranks are ready, and nothing is left to do (R34).
func (w *world) checkIncidents() {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		run := w.Runs[name]
		if r := run.Status.Restarts; run.Status.Phase == rqv1.RunRunning && r != nil && r.Ready == nil && w.whole(run) {
			w.t.Fatalf("R34: all ranks of %s are ready, and its status tells of %+v and of %+v", name, r, run.Status.Deaths)
		}
	}
}

// whole reports whether all pods of a Run that runs are there and ready.
func (w *world) whole(run *rqv1.Run) bool {
	ready := 0
	for _, pod := range w.PodsOf(run.Name) {
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" || !slices.ContainsFunc(pod.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			return false
		}
		ready++
	}
	return ready > 0 && run.Status.Ready > 0 && w.fewer(run) == 0
}

// TestRandomDeaths has ranks of Runs that run die, be late and be evicted, one by one and many at once, where statuses
// tell of few of them, and asserts that all are started again or moved as long as their Runs go on, that nothing of it
// is taken for their users' doing, and that incidents end.
func TestRandomDeaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.forgetful(t)
		w.AtOnce = rapid.Bool().Draw(t, "at once")
		runtime, limit := rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}, int32(20)
		if rapid.Bool().Draw(t, "patient") {
			runtime.Restarts = &rqv1.RunRestarts{Limit: &limit}
		}
		dueAny(t, &runtime)
		w.guarded(12, rapid.IntRange(3, 6).Draw(t, "ranks"), rapid.IntRange(0, 2).Draw(t, "spares"),
			patient(rapid.SampledFrom(graces).Draw(t, "grace")), func(s *rqv1.RunSpec) { s.Runtime = &runtime })
		actions := w.kubeletActions(func() {})
		maps.Copy(actions, w.deathActions())
		t.Repeat(actions)
		w.AtOnce = true
		w.works(200)
		w.allReady()
		w.settle()
		w.check()
		w.checkSettled()
	})
}

// deathActions have ranks end, and time go by.
func (w *world) deathActions() map[string]func(*rapid.T) {
	some := func(do func(types.UID)) func(*rapid.T) {
		return func(t *rapid.T) {
			pods := w.beganPods()
			if len(pods) == 0 {
				return
			}
			all := rapid.IntRange(0, 2).Draw(t, "all") == 0
			first := rapid.IntRange(0, len(pods)-1).Draw(t, "first")
			for i, uid := range pods {
				if i == first || all && i > first {
					do(uid)
				}
			}
		}
	}
	return map[string]func(*rapid.T){
		"fail":  some(func(uid types.UID) { w.EndPod(uid, corev1.PodFailed) }),
		"evict": some(w.EvictByAPI),
		"shut":  some(func(uid types.UID) { w.Evict(uid, "NodeShutdown") }),
		"work":  func(*rapid.T) { w.works(2) },
		"go on": func(t *rapid.T) { w.works(rapid.IntRange(5, 30).Draw(t, "rounds")); w.checkLate() },
		"wait":  func(t *rapid.T) { w.Pass(time.Duration(rapid.IntRange(1, 900).Draw(t, "seconds")) * time.Second) },
		"crash": func(*rapid.T) {
			if !slices.ContainsFunc(w.OpenLeases(), func(l *rqv1.Lease) bool { return w.Pods[l.PodUID()] == nil }) {
				w.crash() // else nobody can know how they went
			}
		},
		"recover": func(*rapid.T) { w.allReady(); w.works(5) },
		"":        func(*rapid.T) { w.check(); w.checkCauses() },
	}
}

// works lets everybody work for so many seconds.
func (w *world) works(seconds int) {
	for range seconds {
		w.round()
		w.EndPods()
		w.Pass(time.Second)
	}
}

// checkCauses asserts that no rank's Lease closes as deleted by the Run's user, who has deleted nothing.
func (w *world) checkCauses() {
	for _, name := range slices.Sorted(maps.Keys(w.Leases)) {
		l := w.Leases[name]
		if s := &l.Status; s.Closed && l.Spec.Slice.Role == rqv1.RoleActive && s.Cause == rqv1.CauseUser {
			w.t.Fatalf("Lease %s closes as %s by the doing of %s", name, s.ClosureReason, s.Cause)
		}
	}
}

// checkLate asserts that no rank is left that was not ready in time (R39), once everybody has had the time to work.
func (w *world) checkLate() {
	for _, lease := range w.OpenLeases() {
		run, pod := w.Runs[lease.Spec.RunRef.Name], w.Pods[lease.PodUID()]
		if run == nil || run.Spec.StartupDeadline() == 0 || lease.Spec.Slice.Role != rqv1.RoleActive || pod == nil ||
			pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		by := lease.HeldSince().Add(run.Spec.StartupDeadline())
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.After(by) &&
				w.Now.Sub(by) > 5*time.Second {
				w.t.Fatalf("R39: %s was not ready by %s, and it is %s: %s", pod.Name, by, w.Now, run.Status.Message)
			}
		}
	}
}
