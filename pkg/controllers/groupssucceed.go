package controllers

import (
	"cmp"
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
	// runs are those groups of it that have a Run which has not ended, and vacant those of them that may have no pod.
	runs, vacant map[group.Key]bool
	// waiting are its pods that wait.
	waiting map[types.UID]*corev1.Pod
}

// recent is how long after a pod has been made the one may be heard of to go that it replaces.
const recent = 5 * time.Second

// makerOf returns the controller that makes the pods of a Run which stands for a group of one; empty where none does.
func makerOf(run *rqv1.Run) types.UID {
	if key, ok := group.KeyOf(run); ok && key.Alone() && len(run.OwnerReferences) == 1 &&
		run.OwnerReferences[0].Kind != key.Kind {
		return run.OwnerReferences[0].UID
	}
	return ""
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
func (g *groups) makes(uid types.UID) *maker {
	m := g.makers[uid]
	if m == nil {
		m = &maker{map[group.Key]bool{}, map[group.Key]bool{}, map[types.UID]*corev1.Pod{}}
		g.makers[uid] = m
	}
	return m
}

// waitsFor notes that a pod waits, or no more, for the sake of those that its controller has made. The lock is held.
func (g *groups) waitsFor(pod *corev1.Pod, waits bool) {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil || !group.Of(pod).Alone() || !g.asksForGPUs(pod) {
		return
	}
	if waits {
		g.makes(by.UID).waiting[pod.UID] = pod
		return
	}
	delete(g.makes(by.UID).waiting, pod.UID)
	g.forgetMaker(by.UID)
}

// stands notes that a Run stands for a group of one, or no more: it has ended, or is gone. The lock is held.
func (g *groups) stands(run *rqv1.Run, is bool) {
	by := makerOf(run)
	if by == "" {
		return
	}
	key, _ := group.KeyOf(run)
	m := g.makes(by)
	if is && !m.runs[key] {
		m.runs[key], m.vacant[key] = true, true // until it is seen to have a pod
	}
	if !is {
		delete(m.runs, key)
		delete(m.vacant, key)
		g.forgetMaker(by)
	}
}

func (g *groups) forgetMaker(uid types.UID) {
	if m := g.makers[uid]; m != nil && len(m.runs)+len(m.waiting) == 0 {
		delete(g.makers, uid)
	}
}

// vacate notes that a group of one may have no pod, or none that stays. Who has come just before may be for its place.
func (g *groups) vacate(key group.Key) {
	run := g.cachedRun(runOf(key))
	if !key.Alone() || run == nil || !standsFor(run, key) || makerOf(run) == "" {
		return
	}
	g.mu.Lock()
	m := g.makes(makerOf(run))
	var last *corev1.Pod
	if m.runs[key] {
		m.vacant[key] = true
		for _, pod := range m.waiting {
			if successor(pod) && (last == nil || younger(pod, last) < 0) {
				last = pod
			}
		}
	}
	g.forgetMaker(makerOf(run))
	if last != nil && g.clock.Since(last.CreationTimestamp.Time) < recent {
		g.again(g.keyOf(last))
	}
	g.mu.Unlock()
}

func younger(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
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
	by := metav1.GetControllerOfNoCopy(pod).UID
	for _, key := range g.vacancies(by) {
		if key != v.Key && g.alike(key, v) {
			g.mu.Lock()
			g.setWaiting(pod, v.Key, false)
			g.succeeds[pod.UID], g.at[pod.UID] = key, key
			g.setWaiting(pod, key, true)
			delete(g.makes(by).vacant, key)
			g.mu.Unlock()
			g.again(key)
			return true
		}
	}
	return false
}

// vacancies returns the groups of one of a controller that have no pod which stays, in order.
func (g *groups) vacancies(by types.UID) []group.Key {
	g.mu.Lock()
	m := g.makers[by]
	var maybe []group.Key
	if m != nil {
		for key := range m.vacant {
			maybe = append(maybe, key)
		}
	}
	g.mu.Unlock()
	var out []group.Key
	for _, key := range maybe {
		if g.isVacant(key) {
			out = append(out, key)
			continue
		}
		g.mu.Lock()
		delete(m.vacant, key)
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
	waiting, members, err := g.podsOf(key, run)
	return err == nil && len(waiting) == 0 && !slices.ContainsFunc(members, func(pod *corev1.Pod) bool {
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
	return d.Spec == nil || d.Spec.PriorityClassName == run.Spec.PriorityClassName &&
		equality.Semantic.DeepEqual(d.Spec.Resources, run.Spec.Resources)
}

// left reports whether the place of a group of one is for nobody: its controller asks for no more pods than it has.
func (g *groups) left(run *rqv1.Run, maker map[string]any) bool {
	asked, says := group.Asked(maker)
	key, _ := group.KeyOf(run)
	by := makerOf(run)
	if !says || by == "" {
		return false
	}
	g.vacancies(by) // those are forgotten that have pods
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.makers[by]
	if m == nil || !m.vacant[key] {
		return false
	}
	there := len(m.runs) - len(m.vacant)
	for uid := range m.waiting {
		if !m.runs[g.at[uid]] {
			there++
		}
	}
	return m.leaves(key, asked-there)
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
