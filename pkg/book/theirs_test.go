package book_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// theirs has somebody else make the pods of a Run.
func theirs(s *rqv1.RunSpec) {
	s.Source, s.Pods, s.Template = rqv1.SourcePods, &rqv1.RunPods{Kind: "Group", Name: "g"}, nil
}

// lateAny has them be made only once others of the Run are bound, all but the first.
func lateAny(t *rapid.T, pods int) func(*rqv1.RunSpec) {
	first := rapid.IntRange(1, pods).Draw(t, "made first")
	late := rapid.IntRange(0, 2).Draw(t, "made late") == 0
	return func(s *rqv1.RunSpec) {
		theirs(s)
		if late {
			s.Pods.Late, s.Pods.First = true, int32(first)
		}
	}
}

// slot is one of the pods that somebody is to make for a Run.
type slot struct {
	run types.UID
	n   int
}

// controllers are whoever makes pods for Runs: of which none comes any more, which are done, since when there has been
// none of a Run, how many there are to be, if not as many as it started with, and whether those that are made late wait
// until others are ready, and not just bound.
type controllers struct {
	less, done map[slot]bool
	empty      map[types.UID]time.Time
	wants      map[types.UID]int
	next       map[types.UID]int // how many more are made once others are done
	inOrder    bool
	affinity   *corev1.Affinity // of the pods that they make
	pinned     map[int]string   // those of them that name a node, by slot
	claims     map[int]string   // those of them that use a volume, by slot
	cpus       map[int]string   // those of them that ask for CPUs, by slot
	// spreads says which are to be spread evenly over nodes; nil for none.
	spreads func(slot int) bool
	// spread is the rule by which all are spread over nodes like their Run's others, but for whom it counts; nil for none.
	spread *corev1.TopologySpreadConstraint
}

// wants returns how many pods a Run's controller is to make.
func (w *world) wants(run *rqv1.Run) int {
	if n, said := w.controllers.wants[run.UID]; said {
		return n
	}
	return int(run.Spec.Resources.TotalGPUs / *run.Spec.Resources.GPUsPerPod)
}

// theirRuns returns the Runs whose pods others make, by name.
func (w *world) theirRuns() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		if w.Runs[name].Spec.Theirs() {
			names = append(names, name)
		}
	}
	return names
}

// missing returns the pods that a Run's controller is to make now, one for each that has failed or is gone.
func (w *world) missing(run *rqv1.Run) (out []int) {
	there, left := w.Slots(run.UID), 0
	n := w.wants(run)
	waits := run.Spec.Pods.Late
	for _, pods := range there {
		for _, pod := range pods {
			ready, _ := rank.ReadySince(pod)
			waits = waits && pod.Status.Phase != corev1.PodSucceeded &&
				(pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || w.controllers.inOrder && !ready)
		}
	}
	open := 0
	for i := range n + w.controllers.next[run.UID] {
		if open == n {
			break
		}
		at := slot{run.UID, i}
		lives := false
		for _, pod := range there[i] {
			w.controllers.done[at] = w.controllers.done[at] || pod.Status.Phase == corev1.PodSucceeded
			lives = lives || pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
		}
		comes := run.Spec.Pods.Late && run.Status.Phase != rqv1.RunRunning // else it would be started in vain again and again
		if w.controllers.done[at] {
			continue
		}
		if open++; w.controllers.less[at] && !comes {
			continue
		}
		if left++; !lives && (!waits || i < int(run.Spec.Pods.First)) {
			out = append(out, i)
		}
	}
	if left == 0 {
		w.GroupEnds[run.UID] = rqv1.RunCompleted
	}
	return out
}

// controlled has the controller of a Run make some of the pods that are missing.
func (w *world) controlled(run *rqv1.Run, most int) {
	if run.Ended() {
		return
	}
	for i, n := range w.missing(run) {
		if i < most {
			affinity := w.controllers.affinity
			if node := w.controllers.pinned[n]; node != "" {
				affinity = onNode(node)
			}
			var spread []corev1.TopologySpreadConstraint
			if w.controllers.spreads != nil && w.controllers.spreads(n) {
				spread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
					WhenUnsatisfiable: corev1.DoNotSchedule}}
			}
			if rule := w.controllers.spread; rule != nil {
				spread = []corev1.TopologySpreadConstraint{*rule}
				spread[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{rqv1.LabelRun: run.Name}}
			}
			w.Make(sim.Foreign{Run: run, Slot: n, Any: len(run.Name)%2 == 0 || n >= w.wants(run), Grace: int64(n % 3),
				Affinity: affinity, Spread: spread, Claim: w.controllers.claims[n], CPU: w.controllers.cpus[n]})
		}
	}
}

// control has all controllers do all that they are to do.
func (w *world) control() {
	for _, name := range w.theirRuns() {
		w.resize(w.Runs[name])
		w.controlled(w.Runs[name], 100)
		w.letGo(w.Runs[name])
	}
	for _, uid := range w.Leftovers() {
		if pod := w.Pods[uid]; pod.DeletionTimestamp == nil {
			w.TerminateWithin(uid, nil)
		}
	}
}

// nextAny has a pod of a group be done after which its controller makes another, as that of a Job with more completions
// than pods at a time does.
func (w *world) nextAny(t *rapid.T) {
	name, ok := pick(t, "run", w.theirRuns())
	if !ok || w.Runs[name].Spec.Pods.Late {
		return
	}
	run, running := w.Runs[name], w.runsOf(name)
	if len(running) == 0 {
		return
	}
	n := rapid.SampledFrom(running).Draw(t, "pod")
	w.controllers.done[slot{run.UID, n}] = true
	w.controllers.next[run.UID]++
	w.succeeds(name, n)
	if rapid.Bool().Draw(t, "at once") {
		w.controlled(run, 1)
	}
}

// letGo has a Run go that has had no pods for as long as their places are kept (R42), as whoever derives it does.
func (w *world) letGo(run *rqv1.Run) {
	since, noted := w.controllers.empty[run.UID]
	switch {
	case run.Ended() || len(w.Slots(run.UID)) > 0:
		delete(w.controllers.empty, run.UID)
	case !noted:
		w.controllers.empty[run.UID] = w.Now
	case w.Now.Sub(since) >= gangDeadline:
		w.DeleteRun(run.Name)
	}
}

// controlAny has a controller make some pods.
func (w *world) controlAny(t *rapid.T) {
	if name, ok := pick(t, "run", w.theirRuns()); ok {
		w.controlled(w.Runs[name], rapid.IntRange(1, 9).Draw(t, "pods"))
	}
}

// anewAny has a controller delete all pods of a group, and make them anew.
func (w *world) anewAny(t *rapid.T) {
	name, ok := pick(t, "run", w.theirRuns())
	if !ok {
		return
	}
	for _, pods := range w.Slots(w.Runs[name].UID) {
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil {
				w.TerminateWithin(pod.UID, nil)
			}
		}
	}
}

// smallerAny has a pod of a group go for good.
func (w *world) smallerAny(t *rapid.T) {
	name, ok := pick(t, "run", w.theirRuns())
	if !ok {
		return
	}
	run := w.Runs[name]
	n := rapid.IntRange(0, w.wants(run)-1).Draw(t, "pod")
	w.controllers.less[slot{run.UID, n}] = true
	for _, pod := range w.Slots(run.UID)[n] {
		if pod.DeletionTimestamp == nil {
			w.TerminateWithin(pod.UID, nil)
		}
	}
}

// fewer returns how many pods of a Run are not there because no more come of them.
func (w *world) fewer(run *rqv1.Run) (n int32) {
	if !run.Spec.Theirs() {
		return 0
	}
	there := w.Slots(run.UID)
	for at := range w.controllers.less {
		if at.run == run.UID && len(there[at.n]) == 0 && !w.controllers.done[at] {
			n++
		}
	}
	if m := run.Status.Width; m != nil && m.Granted > 0 { // others than the last may have gone
		n += max(0, m.Granted / *run.Spec.Resources.GPUsPerPod - int32(w.wants(run)))
	}
	return n
}

// resizeAny has a group be of another number of pods.
func (w *world) resizeAny(t *rapid.T) {
	name, ok := pick(t, "run", w.theirRuns())
	if !ok || w.Runs[name].Spec.Pods.Late {
		return
	}
	run, step := w.Runs[name], 1
	if l := run.Spec.Locality; l != nil && l.GroupGPUs != nil {
		step = int(*l.GroupGPUs / *run.Spec.Resources.GPUsPerPod)
	}
	w.resizeTo(name, step*rapid.IntRange(1, 1+w.wants(run)/step).Draw(t, "groups"))
}

// resizeTo has a group be of so many pods: those go that are more, whichever ranks they have.
func (w *world) resizeTo(name string, pods int) {
	run := w.Runs[name]
	w.controllers.wants[run.UID] = pods
	slots := w.Slots(run.UID)
	for _, n := range slices.Sorted(maps.Keys(slots)) {
		for _, pod := range slots[n] {
			if n >= pods && pod.DeletionTimestamp == nil {
				w.TerminateWithin(pod.UID, nil)
			}
		}
	}
	for at := range w.controllers.less {
		if at.run == run.UID && at.n >= pods {
			delete(w.controllers.less, at)
		}
	}
	w.resize(run)
}

// resize has a Run ask for the pods that its group is to have, as whoever derives it does (R42).
func (w *world) resize(run *rqv1.Run) {
	if _, said := w.controllers.wants[run.UID]; !said || run.DeletionTimestamp != nil {
		return
	}
	var members []*corev1.Pod
	bound := false
	for _, uid := range w.SortedPods() {
		if pod := w.Pods[uid]; pod.Labels[rqv1.LabelRunUID] == string(run.UID) {
			members = append(members, pod)
			bound = bound || pod.Spec.NodeName != "" && !rank.Ended(pod)
		}
	}
	is := group.WidthOf(&run.Spec)
	to := &is
	switch {
	case run.Status.Phase == rqv1.RunRunning:
		to = group.WidthFor(&run.Spec, w.wants(run), true, members)
	case run.Status.Phase == rqv1.RunPending && !bound:
		to = &group.Width{TotalGPUs: int32(w.wants(run)) * *run.Spec.Resources.GPUsPerPod}
	}
	if equality.Semantic.DeepEqual(is, *to) {
		return
	}
	run = run.DeepCopy()
	run.Generation++
	run.Spec.Resources.TotalGPUs, run.Spec.Malleable, run.Spec.Pods.Ranks = to.TotalGPUs, to.Malleable, to.Ranks
	w.SetRun(run)
}
