package book_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// mixedActions are what happens to many pods of a Run at once, and what a process sees late.
func (s *storm) mixedActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"many end":    s.manyEnd,
		"all fail":    func(t *rapid.T) { s.allEnd(t, func(uid types.UID) { s.EndPod(uid, corev1.PodFailed) }) },
		"all deleted": func(t *rapid.T) { s.allEnd(t, s.DeletePod) },
		"all evicted": func(t *rapid.T) { s.allEnd(t, s.EvictByAPI) },
		"lose a node": func(t *rapid.T) {
			if node, ok := pick(t, "node", slices.DeleteFunc(slices.Sorted(maps.Keys(s.Nodes)), s.Lost)); ok {
				s.Lose(node)
				s.disturb()
			}
		},
		"submit theirs": s.submitTheirs,
		"controller":    s.controlAny,
		"late watch": func(t *rapid.T) {
			s.step(func() { s.unseen(s.during) })
			s.CatchUp()
			s.disturb()
		},
		"late statuses": func(t *rapid.T) {
			s.WriteLate()
			s.someSteps(t)
			s.step(func() {
				for _, name := range s.Live() {
					s.reconcile(name)
				}
			})
			s.someSteps(t)
			for range rapid.IntRange(0, 2).Draw(t, "ends") {
				s.EndPods()
			}
			s.CatchUp()
			s.disturb()
		},
		"steps": s.someSteps,
	}
}

// someSteps has Runs be looked at and pods be tried, each by itself.
func (s *storm) someSteps(t *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		if name, ok := pick(t, "run", s.Live()); ok {
			s.step(func() { s.reconcile(name) })
		}
		s.Act()
		if uid, ok := pick(t, "pod", s.SortedPods()); ok {
			s.cycle(uid)
		}
	}
}

// submitTheirs submits a Run of others' pods.
func (s *storm) submitTheirs(t *rapid.T) {
	name := fmt.Sprintf("run%d", rapid.IntRange(0, 4).Draw(t, "name"))
	if s.Runs[name] != nil || slices.Contains(s.Names(), name) {
		return
	}
	groups, pods := rapid.IntRange(1, 2).Draw(t, "groups"), rapid.IntRange(1, 3).Draw(t, "pods per group")
	changes := []func(*rqv1.RunSpec){lateAny(t, groups*pods)}
	if rapid.Bool().Draw(t, "without groups") {
		changes = append(changes, ungrouped)
	}
	s.submitWithSpares(name, rapid.SampledFrom([]rqv1.Owner{"org:a", "org:b", "org:c"}).Draw(t, "owner"), groups, pods,
		rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "GPUs per pod"), rapid.IntRange(0, 1).Draw(t, "spares per group"),
		changes...)
}

// manyEnd has some pods of a Run end, well or not.
func (s *storm) manyEnd(t *rapid.T) {
	of, ok := pick(t, "run", slices.Sorted(maps.Keys(s.Runs)))
	if !ok {
		return
	}
	for _, uid := range s.beganPods() {
		if s.Pods[uid].Labels[rqv1.LabelRun] != of {
			continue
		}
		switch rapid.IntRange(0, 4).Draw(t, s.Pods[uid].Name) {
		case 1:
			s.EndPod(uid, corev1.PodSucceeded)
		case 2:
			s.EndPod(uid, corev1.PodFailed)
		case 3:
			s.Evict(uid, "NodeShutdown")
		case 4:
			s.DeletePod(uid)
		}
	}
	s.disturb()
}

// allEnd has all ranks of a Run end in one way, and its spares, perhaps.
func (s *storm) allEnd(t *rapid.T, how func(types.UID)) {
	of, ok := pick(t, "run", slices.Sorted(maps.Keys(s.Runs)))
	if !ok {
		return
	}
	spares := rapid.Bool().Draw(t, "spares too")
	for _, uid := range s.beganPods() {
		if l := s.Pods[uid].Labels; l[rqv1.LabelRun] == of && (spares || l[rqv1.LabelRole] == string(rqv1.RoleActive)) {
			how(uid)
		}
	}
	s.during(time.Duration(rapid.IntRange(0, 2).Draw(t, "seconds")) * time.Second)
	s.disturb()
}

// few leaves only some of the actions, perhaps, so that these happen often.
func (s *storm) few(t *rapid.T, actions map[string]func(*rapid.T)) {
	if !rapid.Bool().Draw(t, "few") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		if name != "" && rapid.IntRange(0, 3).Draw(t, name) > 0 {
			delete(actions, name)
		}
	}
	actions["work"] = func(*rapid.T) { s.step(s.work) }
}
