package controllers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// maker is what is known of a controller whose pods are groups of their own.
type maker struct {
	// runs are those groups of it that have a Run which has not ended, and vacant those of them that may have no pod, each
	// with the number of times that this was noted.
	runs   map[group.Key]bool
	vacant map[group.Key]int
	// waiting are its pods that wait. Young are those that may be for the place of another, by when they came: some of
	// them may wait no more.
	waiting map[types.UID]*corev1.Pod
	young   []*corev1.Pod
	// sets are the controllers that it has, one for each template of its pods.
	sets []metav1.OwnerReference
}

// recent is how long after a pod has been made the one may be heard of to go that it replaces.
const recent = 5 * time.Second

// settles is for how long a place is for nobody before it is given up: the pod that is to have it may be about to be
// made, or seen.
const settles = 2 * time.Second

// makerID names a controller: anybody can name one of another namespace as that of their own pods.
type makerID struct {
	namespace string
	uid       types.UID
}

// makerOf returns the controller that makes the pods of a Run which stands for a group of one; nothing where none does.
func makerOf(run *rqv1.Run) makerID {
	if key, ok := group.KeyOf(run); ok && key.Alone() && len(run.OwnerReferences) == 1 &&
		run.OwnerReferences[0].Kind != key.Kind {
		return makerID{run.Namespace, run.OwnerReferences[0].UID}
	}
	return makerID{}
}

// lasting are what makes the pods of controllers that do so for one template alone, by these.
type lasting map[makerID]metav1.OwnerReference

// lastsFor returns what makes pods for which a controller is named, whatever their template.
func (g *groups) lastsFor(by makerID) makerID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lasts(by)
}

// lasts does so while the lock is held.
func (g *groups) lasts(by makerID) makerID {
	if over, known := g.lasting[by]; known {
		return makerID{by.namespace, over.UID}
	}
	return by
}

// learn notes what makes the pods of a group of one, where the controller that they name does so for their template
// alone: the places of its pods are for those of the next template as well. That controller may be gone by now.
func (g *groups) learn(o *group.Observed) {
	if !o.Key.Alone() || len(o.Pods) == 0 {
		return
	}
	named := metav1.GetControllerOfNoCopy(o.Pods[0])
	if named == nil {
		return
	}
	set := makerID{o.Key.Namespace, named.UID}
	g.mu.Lock()
	defer g.mu.Unlock()
	over, known := g.lasting[set]
	if known && (o.By == nil || o.By.UID == named.UID) {
		o.By = &over
	}
	if known || o.By == nil || o.By.UID == named.UID {
		return
	}
	by, was := makerID{set.namespace, o.By.UID}, g.makers[set]
	if was == nil && g.makers[by] == nil {
		return // nothing is known of their pods
	}
	if g.lasting == nil {
		g.lasting = lasting{}
	}
	g.lasting[set] = *o.By
	m := g.makes(by)
	m.sets = append(m.sets, *named)
	if was != nil {
		g.join(m, by, was)
		delete(g.makers, set)
	}
}

// join has a controller have what another had. The lock is held.
func (g *groups) join(m *maker, by makerID, was *maker) {
	for key := range was.runs {
		g.of(key).maker = by
	}
	maps.Copy(m.runs, was.runs)
	maps.Copy(m.vacant, was.vacant)
	maps.Copy(m.waiting, was.waiting)
	m.young = append(m.young, was.young...)
	slices.SortStableFunc(m.young, func(a, b *corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

// successor reports whether a pod may be the next one that a controller makes instead of another of another name.
func successor(pod *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) != nil && !group.KeepsName(pod) && group.Of(pod).Alone()
}

// keyOf returns the group that a pod is in which has no rank: the one that it says, or whose place it takes. The lock
// is held.
func (g *groups) keyOf(pod *corev1.Pod) group.Key {
	key := group.Of(pod).Key
	if in, succeeds := g.succeeds[pod.UID]; succeeds && key.Alone() {
		return in
	}
	return key
}

// makes returns what is known of a controller. The lock is held.
func (g *groups) makes(by makerID) *maker {
	m := g.makers[by]
	if m == nil {
		m = &maker{runs: map[group.Key]bool{}, vacant: map[group.Key]int{}, waiting: map[types.UID]*corev1.Pod{}}
		g.makers[by] = m
	}
	return m
}

// waitsFor notes that a pod waits, or no more, for the sake of those that its controller has made. The lock is held.
func (g *groups) waitsFor(pod *corev1.Pod, waits bool) {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil || !group.Of(pod).Alone() || !g.asksForGPUs(pod) {
		return
	}
	id := g.lasts(makerID{pod.Namespace, by.UID})
	m := g.makes(id)
	if waits {
		if _, waited := m.waiting[pod.UID]; !waited && successor(pod) {
			m.young = append(m.young, pod)
		}
		m.waiting[pod.UID] = pod
		return
	}
	delete(m.waiting, pod.UID)
	g.forgetMaker(id)
}

// stands notes that a Run stands for a group of one, or no more: it has ended, or is gone. The lock is held.
func (g *groups) stands(run *rqv1.Run, is bool) {
	key, alone := group.KeyOf(run)
	if !alone || !key.Alone() {
		return
	}
	of, by := g.of(key), g.lasts(makerOf(run))
	if was := of.maker; was != (makerID{}) && (!is || was != by) {
		m := g.makes(was)
		delete(m.runs, key)
		delete(m.vacant, key)
		g.forgetMaker(was)
		of.maker = makerID{}
	}
	if is && by != (makerID{}) && of.maker != by {
		m := g.makes(by)
		m.runs[key], of.maker = true, by
		m.vacant[key]++ // until it is seen to have a pod
	}
}

func (g *groups) forgetMaker(by makerID) {
	if m := g.makers[by]; m != nil && len(m.runs)+len(m.waiting) == 0 {
		delete(g.makers, by)
		for _, set := range m.sets {
			delete(g.lasting, makerID{by.namespace, set.UID})
		}
	}
}

// vacate notes that a group of one may have no pod, or none that stays. Who has come just before may be for its place.
func (g *groups) vacate(key group.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.known[key]
	if of == nil || of.maker == (makerID{}) {
		return
	}
	m := g.makes(of.maker)
	m.vacant[key]++
	for len(m.young) > 0 {
		last := m.young[len(m.young)-1]
		m.young = m.young[:len(m.young)-1]
		if g.clock.Since(last.CreationTimestamp.Time) >= recent {
			m.young = nil // and so are those that came before
			return
		}
		_, succeeds := g.succeeds[last.UID]
		if _, waits := m.waiting[last.UID]; waits && !succeeds {
			g.again(g.keyOf(last))
			return
		}
	}
}

// succeed has a pod that waits alone take the place of one that its controller has made before, and that is gone or
// about to go, if there is one and the pod is like it: what is kept for that one's rank, its spares and its place in
// line outlive it (R42). It reports whether it does.
func (g *groups) succeed(run *rqv1.Run, v *view) bool {
	if len(v.waiting) != 1 || len(v.members) > 0 || !successor(v.waiting[0]) || !v.wants ||
		run != nil && (v.started || run.Ended()) {
		return false
	}
	pod := v.waiting[0]
	if run != nil && g.clock.Since(pod.CreationTimestamp.Time) >= recent {
		return false
	}
	by := g.lastsFor(makerID{pod.Namespace, metav1.GetControllerOfNoCopy(pod).UID})
	for _, key := range g.vacancies(by) {
		if key != v.Key && g.alike(key, v) && g.moves(pod, v.Key, key, by) {
			g.again(key)
			return true
		}
	}
	return false
}

// moves has a pod wait in a group of its controller that has no pod, and reports whether it does: others may have been
// there first, and the pod have changed since it was looked at.
func (g *groups) moves(pod *corev1.Pod, from, to group.Key, by makerID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, at, in := g.makers[by], g.of(from), g.of(to)
	is := at.waiting[pod.UID]
	if m == nil || m.vacant[to] == 0 || len(in.waiting) > 0 || g.unseenOf(in) || is == nil || g.at[pod.UID] != from ||
		g.unseenOf(at) || at.started || gated(is) != gated(pod) {
		return false
	}
	g.setWaiting(is, from, false)
	g.succeeds[pod.UID], g.at[pod.UID] = to, to
	g.setWaiting(is, to, true)
	delete(m.vacant, to)
	return true
}

// vacancies returns the groups of one of a controller that have no pod which stays, in order.
func (g *groups) vacancies(by makerID) []group.Key {
	maybe := map[group.Key]int{}
	g.mu.Lock()
	if m := g.makers[by]; m != nil {
		maps.Copy(maybe, m.vacant)
	}
	g.mu.Unlock()
	var out []group.Key
	for key, noted := range maybe {
		if g.isVacant(key) {
			out = append(out, key)
			continue
		}
		g.mu.Lock()
		if m := g.makers[by]; m != nil && m.vacant[key] == noted { // no other has gone meanwhile
			delete(m.vacant, key)
		}
		g.mu.Unlock()
	}
	slices.SortFunc(out, inOrder)
	return out
}

// inOrder compares groups of one by their pods' names, by numbers where these end with some.
func inOrder(a, b group.Key) int {
	return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
}

// isVacant reports whether a Run stands for a group of one, and none of its pods stays.
func (g *groups) isVacant(key group.Key) bool {
	run := g.runOf(key)
	if run == nil || run.Ended() || run.DeletionTimestamp != nil {
		return false
	}
	g.mu.Lock()
	unseen := g.unseenOf(g.of(key))
	g.mu.Unlock()
	waiting, members, err := g.podsOf(key, run)
	return err == nil && !unseen && len(waiting) == 0 && !slices.ContainsFunc(members, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp == nil && !rank.Ended(pod)
	})
}

// alike reports whether a pod that waits alone is like those that the Run of a group is for.
func (g *groups) alike(key group.Key, v *view) bool {
	run := g.runOf(key)
	if run == nil || g.misfit(run, v.waiting[0]) != "" {
		return false
	}
	o := *v.Observed
	o.Key = key
	d := group.DeriveNew(&o)
	return d.Spec != nil && d.Spec.Owner == run.Spec.Owner && d.Spec.PriorityClassName == run.Spec.PriorityClassName &&
		equality.Semantic.DeepEqual(d.Spec.Resources, run.Spec.Resources)
}

// left reports whether the place of a group of one is for nobody: its controller asks for no more pods than it has. In
// a rollout those that it has for its templates may ask for more than it says.
func (g *groups) left(ctx context.Context, run *rqv1.Run, maker map[string]any) (bool, error) {
	asked, says := group.Asked(maker)
	by := g.lastsFor(makerOf(run))
	if !says || by == (makerID{}) || !g.leaves(run, by, asked) {
		return false, nil
	}
	if asked == 0 {
		return true, nil
	}
	more, err := g.askedForTemplates(ctx, by)
	return err == nil && (more <= asked || g.leaves(run, by, more)), err
}

// askedForTemplates returns how many pods those ask for that a controller has, one for each template.
func (g *groups) askedForTemplates(ctx context.Context, by makerID) (pods int, err error) {
	g.mu.Lock()
	var sets []metav1.OwnerReference
	if m := g.makers[by]; m != nil {
		sets = slices.Clone(m.sets)
	}
	g.mu.Unlock()
	for i := range sets {
		set, err := g.named(ctx, by.namespace, &sets[i])
		switch {
		case unreadable(err):
			continue
		case err != nil:
			return 0, err
		case set.GetUID() == sets[i].UID:
			asks, _ := group.Asked(set.Object)
			pods += asks
		}
	}
	return pods, nil
}

// leaves reports whether a controller that asks for so many pods has no more for a group of one. One that waits and is
// in no Run may be the one that is to have the place.
func (g *groups) leaves(run *rqv1.Run, by makerID, asked int) bool {
	key, _ := group.KeyOf(run)
	if asked > 0 {
		g.vacancies(by) // those are forgotten that have pods
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	of, m := g.of(key), g.makers[by]
	since := of.empty
	if since.IsZero() {
		since = of.idle
	}
	if m == nil || m.vacant[key] == 0 || since.IsZero() || g.clock.Since(since) < settles {
		return false
	}
	if asked == 0 {
		return true
	}
	for uid := range m.waiting {
		if !m.runs[g.at[uid]] {
			return false
		}
	}
	return m.leaves(key, asked-(len(m.runs)-len(m.vacant)))
}

// leaves reports whether a group that has no pod is to have none, since so many more are asked for: the last are left.
func (m *maker) leaves(key group.Key, more int) bool {
	before := 0
	for other := range m.vacant {
		if inOrder(other, key) < 0 {
			before++
		}
	}
	return before >= more
}
