package book_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// faults are what the cluster around the scheduler does to it, beside losing nodes.
type faults struct {
	// quota is how many more pods the API server admits; it admits all while that is below 0.
	quota int
	// problems are what the API server last held against the pods of a Run.
	problems map[string]string
}

func newFaults() faults { return faults{quota: -1, problems: map[string]string{}} }

// admits reports whether the API server takes one pod more of a Run.
func (w *world) admits(run string) bool {
	if w.quota == 0 {
		w.problems[run] = "the API server does not take the Run's pods: exceeded quota"
		return false
	}
	w.quota = max(-1, w.quota-1)
	return true
}

// graces are the grace periods that templates ask for, in seconds; one that is not asked for is 30.
var graces = []int64{0, 1, 20, 45}

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
}
