package book_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// drainActions are what those do who empty nodes, now or at a time that they announce.
func (s *storm) drainActions() map[string]func(*rapid.T) {
	any := func(t *rapid.T) (string, bool) {
		return pick(t, "node", slices.DeleteFunc(slices.Sorted(maps.Keys(s.Nodes)), s.Lost))
	}
	return map[string]func(*rapid.T){
		"maintain": func(t *rapid.T) {
			if node, ok := any(t); ok {
				s.announce(node, time.Duration(rapid.IntRange(0, 100).Draw(t, "in"))*time.Second,
					time.Duration(rapid.IntRange(1, 200).Draw(t, "for"))*time.Second)
			}
		},
		"call maintenance off": func(t *rapid.T) {
			if node, ok := any(t); ok {
				s.announce(node, 0, 0)
			}
		},
		"cordon": func(t *rapid.T) {
			if node, ok := any(t); ok {
				s.cordon(node, true)
			}
		},
		"uncordon": func(t *rapid.T) {
			if node, ok := any(t); ok {
				s.cordon(node, false)
			}
		},
		"evict": func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.SortedPods()); ok && s.Pods[uid].Status.Phase == corev1.PodRunning {
				if s.AskToEvict(uid) {
					s.tally["evicted"]++
				} else {
					s.tally["not evicted"]++
				}
				s.disturb()
			}
		},
		"save": func(t *rapid.T) {
			if name, ok := pick(t, "run", s.undeleted()); ok {
				run := s.Runs[name].DeepCopy()
				run.Annotations = map[string]string{rqv1.AnnotationSavedAt: s.Now.UTC().Format(time.RFC3339)}
				s.SetRun(run)
			}
		},
	}
}

func (s *storm) cordon(node string, cordoned bool) {
	s.change(node, func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
	s.disturb()
}

// serveAgain has all nodes serve again that are not lost.
func (s *storm) serveAgain() {
	for _, node := range slices.Sorted(maps.Keys(s.Nodes)) {
		if !s.Lost(node) {
			s.announce(node, 0, 0)
			s.cordon(node, false)
		}
	}
}

// checkMoves asserts that pods leave for maintenance of their nodes alone, in time, and that no rank of a Run does
// while another is away.
func (w *world) checkMoves(o lifecycle.Observed, d lifecycle.Decision) {
	for _, deletion := range d.Delete {
		if deletion.Notice == nil || deletion.Notice.Reason != rqv1.ClosedMaintenance {
			continue
		}
		pod := deletion.Pod
		if w.sentAway[pod.UID] {
			continue // a shard that has been told to go goes, although it could stay by now
		}
		w.sentAway[pod.UID] = o.Run.Spec.Opportunistic
		window := o.Nodes[pod.Spec.NodeName].Outage
		until, _ := o.Run.EndsAt()
		if !window.Shuts(w.Now, until) ||
			w.Now.Before(window.LeaveFrom(noticePeriod, o.Run.Spec.CheckpointInterval())) {
			w.t.Fatalf("R35: pod %s leaves at %s for %s", pod.Name, w.Now, window)
		}
		if pod.Labels[rqv1.LabelRole] != string(rqv1.RoleActive) {
			continue
		}
		if w.storm != nil {
			w.storm.tally["left for maintenance"]++
		}
		for _, other := range w.PodsOf(o.Run.Name) {
			if other.DeletionTimestamp != nil && other.Labels[rqv1.LabelRole] == pod.Labels[rqv1.LabelRole] &&
				w.within(o, other) {
				w.t.Fatalf("R35: rank %s leaves while %s is leaving", pod.Name, other.Name)
			}
		}
	}
}

// within reports whether a pod is of its Run at the width that the Run has.
func (w *world) within(o lifecycle.Observed, pod *corev1.Pod) bool {
	run, part, ok := rank.Membership(pod)
	return ok && run == o.Run.UID && o.Run.Status.Width != nil &&
		part.Index < int(o.Run.Status.Width.Granted)/o.Demand.GPUsPerPod
}
