package book_test

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// story is what a pod is made for.
type story string

const (
	starting   story = "start"
	activating story = "activation"
	growing    story = "growth"
	swapping   story = "swap"
	requeueing story = "requeue"
)

var stories = []story{starting, activating, growing, swapping, requeueing}

// others are the plugins of other people, in a world where they have something against the pods of some story.
type others struct {
	// refusals is how often they still refuse pods that have their nodes, of which story, and where.
	refusals  int
	refuse    story
	refusesAt sim.Point
	late      bool // the last one came when nobody could know any more
}

// storyOf tells what a pod is made for, or would be.
func (w *world) storyOf(pod *corev1.Pod) story {
	run := w.Runs[pod.Labels[rqv1.LabelRun]]
	epoch := pod.Labels[rqv1.LabelEpoch]
	switch {
	case run == nil:
		return ""
	case run.Status.Phase != rqv1.RunRunning && epoch != "" && epoch != "0":
		return requeueing
	case run.Status.Phase != rqv1.RunRunning && w.activates(run):
		return activating
	case run.Status.Phase != rqv1.RunRunning:
		return starting
	case pod.Annotations[rqv1.AnnotationReplaces] != "":
		return swapping
	case pod.Labels[rqv1.LabelCohort] != "0":
		return growing
	}
	return ""
}

// activates reports whether others are cut for a Run.
func (w *world) activates(run *rqv1.Run) bool {
	for _, r := range w.Reservations {
		if r.Labels[rqv1.LabelRunUID] == string(run.UID) && r.Status.State == rqv1.ReservationActivating {
			return true
		}
	}
	return false
}

// rejected notes that what is planned by GPUs alone may have been planned in vain, and what was found out too late.
// Where rules are asked first they excuse nothing, but for those about who has others cut for it: it had not when they
// were asked.
func (w *world) rejected(pod *corev1.Pod, _ string) {
	if w.storm != nil {
		w.storm.tally["turned down in a "+string(w.storyOf(pod))]++
	}
	if !w.Checks || w.late || w.storyOf(pod) == activating {
		w.unforeseen()
	}
	w.late = false
}

// otherActions are what other plugins may have against the pods of each story.
func (w *world) otherActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"turn a story down": func(t *rapid.T) {
			of, made := rapid.SampledFrom(stories).Draw(t, "story"), rapid.Bool().Draw(t, "once made")
			on, _ := pick(t, "node", append([]string{""}, slices.Sorted(maps.Keys(w.Nodes))...))
			w.turnDown(of, on, made)
		},
		"turn no story down": func(*rapid.T) { w.Turns = nil },
		"refuse a story": func(t *rapid.T) {
			w.refuseNext(rapid.IntRange(1, 3).Draw(t, "times"), rapid.SampledFrom(stories).Draw(t, "story"),
				sim.Point(rapid.IntRange(int(sim.AtFilter), int(sim.AfterLease)).Draw(t, "at")))
		},
	}
}

// turnDown has a node, or all of them, turn the pods of a story down: only those that have been made, if so it is to
// be.
func (w *world) turnDown(of story, on string, made bool) {
	w.Turns = func(pod *corev1.Pod, node string) string {
		if w.storyOf(pod) == of && (on == "" || node == on) && (!made || w.Pods[pod.UID] != nil) {
			return "node(s) didn't satisfy a plugin"
		}
		return ""
	}
	w.unforeseen()
}

// refuseNext has the next pods of a story that have their nodes be refused all the same, so many times.
func (w *world) refuseNext(times int, of story, at sim.Point) {
	w.refusals, w.refuse, w.refusesAt = times, of, at
	w.Refuses = func(pod *corev1.Pod, _ string, at sim.Point) bool {
		if w.refusals == 0 || at != w.refusesAt || w.storyOf(pod) != w.refuse {
			return false
		}
		w.refusals--
		w.late = true
		return true
	}
}
