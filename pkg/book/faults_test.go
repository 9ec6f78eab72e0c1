package book_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// faults are what the cluster around the scheduler does to it, beside losing nodes.
type faults struct {
	// quota is how many more pods the API server admits; it admits all while that is below 0.
	quota int
}

func newFaults() faults { return faults{quota: -1} }

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

// graceOf returns the time that a pod takes to end once it is told to.
func graceOf(pod *corev1.Pod) time.Duration {
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return time.Duration(*own) * time.Second
	}
	return 0 // the worlds' pods end at once unless they say otherwise
}

// clusterActions are what the cluster around the scheduler may do.
func (w *world) clusterActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"quota":      func(t *rapid.T) { w.quota = rapid.IntRange(0, 3).Draw(t, "pods") },
		"lift quota": func(*rapid.T) { w.quota = -1 },
		"reject": func(t *rapid.T) {
			if node, ok := pick(t, "node", slices.Sorted(maps.Keys(w.nodes))); ok {
				w.rejects[node] = "Insufficient cpu"
			}
		},
		"accept": func(*rapid.T) { clear(w.rejects) },
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

// jump sets all clocks forward or back, as somebody does who finds them wrong. What kubelets and timers count goes on as before.
func (s *storm) jump(t *rapid.T) {
	by := time.Duration(rapid.IntRange(-900, 900).Draw(t, "seconds")) * time.Second
	s.now = s.now.Add(by)
	for uid := range s.ends {
		s.ends[uid] = s.ends[uid].Add(by)
	}
	for uid := range s.waiting {
		s.waiting[uid] = s.waiting[uid].Add(by)
	}
	for run := range s.retries {
		s.retries[run] = s.retries[run].Add(by)
	}
	if s.disturb(); by < 0 {
		// Until the clock shows again what it showed, instants do not tell what came first.
		s.disturbed = slices.MaxFunc([]time.Time{s.disturbed, s.now.Add(-by + gangDeadline)}, time.Time.Compare)
		clear(s.shielded)
	}
	s.book.WindowPassed()
}

// relent ends all that the cluster does.
func (w *world) relent() {
	w.quota = -1
	clear(w.rejects)
	w.finalize()
	w.holdBack(nil)
}

// undeleted returns the names of the Runs that nobody has deleted.
func (w *world) undeleted() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.runs)), func(name string) bool { return w.runs[name].DeletionTimestamp != nil })
}

// finalize has those who kept deleted Runs let go of them.
func (w *world) finalize() {
	for _, name := range slices.Sorted(maps.Keys(w.runs)) {
		if w.runs[name].DeletionTimestamp != nil {
			w.deleteRun(name)
		}
	}
}

// unforeseen notes that something has happened which nobody could foresee.
func (w *world) unforeseen() {
	if w.storm != nil {
		w.storm.disturb()
	}
}

// terminate deletes a pod with notice. On a lost node nobody is there to end it.
func (w *world) terminate(uid types.UID) { w.terminateWithin(uid, nil) }

// terminateWithin does so with a grace period in seconds; nil for the pod's own.
func (w *world) terminateWithin(uid types.UID, seconds *int64) {
	pod := w.pods[uid]
	if pod == nil {
		return
	}
	grace := graceOf(pod)
	if seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	switch node := pod.Spec.NodeName; {
	case node != "" && w.lost(node):
		w.tellToGo(pod, w.now)
	case node != "" && w.storm != nil && grace > 0 && pod.Status.Phase == corev1.PodRunning:
		w.storm.endAt(pod, w.now.Add(grace))
	default:
		w.deletePod(uid)
	}
}

// tellToGo has the API server note by when a pod is to be gone, unless it has been told before.
func (w *world) tellToGo(pod *corev1.Pod, by time.Time) {
	if pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = &metav1.Time{Time: by}
		w.setPod(pod)
	}
}
