package book_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// dies has the process die after so many writes of some kinds, and at none that was planned before.
func (w *world) dies(after int, of sim.Kind) {
	w.Faults.Drop(sim.Crash)
	w.Faults.Add(sim.Fault{Of: of, After: after, Do: sim.Crash})
}

// faultAny has a write soon be refused, or its answer not come.
func (w *world) faultAny(t *rapid.T) {
	how := rapid.SampledFrom([]sim.Effect{sim.Refused, sim.Late}).Draw(t, "how it ends")
	w.Faults.Add(sim.Fault{Of: sim.All, After: rapid.IntRange(0, 6).Draw(t, "writes"), Do: how})
}

// quota has the API server take so many pods more; all again while that is below 0.
func (w *world) quota(pods int) {
	w.Faults.Drop(sim.Refused)
	w.Quota = 0
	if pods >= 0 {
		w.Faults.Add(sim.Fault{Of: sim.Creations, After: pods, Do: sim.Refused, Lasts: true})
	}
}

// graces are the grace periods that templates ask for, in seconds; one that is not asked for is 30.
var graces = []int64{0, 1, 20, 45, 31536000}

// patient gives a Run a template with a grace period.
func patient(seconds int64) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &seconds, Containers: []corev1.Container{{Name: "main", Image: "main"}},
		}}
	}
}

// clusterActions are what the cluster around the scheduler may do.
func (w *world) clusterActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"quota": func(t *rapid.T) { w.quota(rapid.IntRange(0, 3).Draw(t, "pods")) },
		"limit": func(t *rapid.T) {
			w.Quota = max(1, len(w.Pods)+rapid.IntRange(-2, 3).Draw(t, "pods"))
			w.unforeseen() // a rank may not be made any more
		},
		"lift quota": func(*rapid.T) { w.quota(-1) },
		"reject": func(t *rapid.T) {
			if node, ok := pick(t, "node", slices.Sorted(maps.Keys(w.Nodes))); ok {
				w.Rejects[node] = "Insufficient cpu"
				w.unforeseen()
			}
		},
		"accept": func(*rapid.T) {
			clear(w.Rejects)
			w.Turns = nil
		},
		"reject a pod that has been made": func(t *rapid.T) {
			if name, ok := pick(t, "run", slices.Sorted(maps.Keys(w.Runs))); ok {
				w.disdain(fmt.Sprintf("%s-%d", name, rapid.IntRange(0, 3).Draw(t, "rank")))
			}
		},
		"hurry": func(*rapid.T) { w.Hurried = !w.Hurried },
		"nobody knows": func(t *rapid.T) {
			if node, ok := pick(t, "node", slices.Sorted(maps.Keys(w.Nodes))); ok {
				w.Unsure[node] = !w.Unsure[node]
			}
		},
		"delete a run with a finalizer": func(t *rapid.T) {
			if name, ok := pick(t, "run", w.undeleted()); ok {
				w.unforeseen()
				w.dismissRun(name)
			}
		},
		"orphan": func(t *rapid.T) {
			if name, ok := pick(t, "run", w.undeleted()); ok {
				w.unforeseen()
				w.orphanRun(name)
			}
		},
		"finalize": func(*rapid.T) { w.finalize() },
	}
}

// disdain has all nodes turn a pod down once it has been made, and nobody know before.
func (w *world) disdain(name string) {
	w.Turns = func(pod *corev1.Pod, _ string) string {
		if pod.Name == name && w.Pods[pod.UID] != nil {
			return "node(s) had volume node affinity conflict"
		}
		return ""
	}
	w.unforeseen()
}

// jump sets all clocks forward or back, as somebody does who finds them wrong. What kubelets and timers count goes on
// as before.
func (s *storm) jump(t *rapid.T) {
	by := time.Duration(rapid.IntRange(-900, 900).Draw(t, "seconds")) * time.Second
	s.Jump(by)
	if s.disturb(); by < 0 {
		// Until the clock shows again what it showed, instants do not tell what came first.
		s.disturbed = slices.MaxFunc([]time.Time{s.disturbed, s.Now.Add(-by + gangDeadline)}, time.Time.Compare)
		clear(s.shielded)
	}
	s.Book.WindowPassed()
}

// relent ends all that the cluster does.
func (w *world) relent() {
	w.quota(-1)
	w.Faults.Drop(sim.Late)
	clear(w.Rejects)
	clear(w.Unsure)
	w.Meanwhile, w.Turns, w.Zone, w.Refuses, w.Hurried = nil, nil, nil, nil, false
	for _, uid := range slices.Sorted(maps.Keys(w.Bystanders)) {
		w.DropBystander(uid)
	}
	w.finalize()
	w.holdBack(nil)
	w.allWell()
	w.allReady()
}

// undeleted returns the names of the Runs that nobody has deleted.
func (w *world) undeleted() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.Runs)), func(name string) bool {
		return w.Runs[name].DeletionTimestamp != nil
	})
}

// finalize has those who kept deleted Runs let go of them.
func (w *world) finalize() {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		if w.Runs[name].DeletionTimestamp != nil {
			w.DeleteRun(name)
		}
	}
}

// unforeseen notes that something has happened which nobody could foresee.
func (w *world) unforeseen() {
	if w.storm != nil {
		w.storm.disturb()
	}
}
