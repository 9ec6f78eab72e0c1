package integration

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestANodeComesBackMeanwhile has the sign of every failure go again while the rank is being replaced: each rank runs
// once, nobody else is touched, and no GPU is lost for good. It is so, too, if the scheduler is killed in between.
func TestANodeComesBackMeanwhile(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"alive": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ownCluster(t, withoutElection, map[string]any{"gangDeadline": "10m", "nodeLossGrace": "1m",
				"nodeLossLimit": "100%"})
			installHolds(t, c, swapWrites)
			(&site{cluster: c, t: t}).startScheduler()
			var all []*returning
			for _, name := range slices.Sorted(maps.Keys(comebacks)) {
				all = append(all, startReturning(t, c, name))
			}
			for _, r := range all {
				r.strike()
			}
			for _, r := range all {
				r.back()
			}
			if killed {
				all[0].killed()
			}
			for _, r := range all {
				r.hold("")
			}
			if killed {
				all[0].startScheduler()
			}
			for _, r := range all {
				r.settle()
			}
		})
	}
}

// returning is one failure on a site of its own: five nodes, of which the Run train has two and a spare, and another
// Run one.
type returning struct {
	*site
	comeback
	name, node string
	was        map[string]corev1.Pod
	other      corev1.Pod
}

// startReturning starts the Runs, and has nothing be bound any more but at a gang's start.
func startReturning(t *testing.T, c *cluster, name string) *returning {
	t.Helper()
	r := &returning{site: namedSite(t, c, "back-"+name, 1, 5, 100), comeback: comebacks[name], name: name}
	r.submit("other", 8, inPods(8))
	r.await("other", rqv1.RunRunning, "bound 8 GPUs")
	r.other = r.podsOf("other")["other-0"]
	if r.start == nil {
		r.start = func(s *site) { usual(s) }
	}
	r.start(r.site)
	if r.rank == "" {
		r.rank = "train-1"
	}
	eventually(t, r.name+": the Run is to have all pods", func() error {
		r.was = r.podsOf("train")
		if r.node = r.was[r.rank].Spec.NodeName; r.node == "" || len(r.was) != 3 && r.rank != "train-0" {
			return fmt.Errorf("it has %d, %s is on %q", len(r.was), r.rank, r.node)
		}
		return nil
	})
	if !r.young {
		r.settled()
	}
	return r
}

// strike shows the sign while nothing can be bound.
func (r *returning) strike() {
	r.t.Helper()
	r.hold("leased")
	r.sign(r.site, r.node)
}

// back takes the sign back once the rank is being replaced.
func (r *returning) back() {
	r.t.Helper()
	if r.movable == nil {
		r.movable = func(s *site, was corev1.Pod) error {
			if pod := s.podsOf("train")[r.rank]; pod.UID == was.UID || pod.UID == "" {
				return fmt.Errorf("%s has no next pod", r.rank)
			}
			return nil
		}
	}
	eventually(r.t, r.name+": the rank is to be replaced", func() error { return r.movable(r.site, r.was[r.rank]) })
	r.undo(r.site, r.node)
}

// settle asserts that all is as it should be once the failure is over.
func (r *returning) settle() {
	r.t.Helper()
	if r.after != nil {
		r.after(r.site)
	}
	total, names := int32(0), slices.Sorted(maps.Keys(r.was))
	eventually(r.t, r.name+": every rank is to run once", func() error {
		run, err := r.get("train")
		if err != nil {
			return err
		}
		total = run.Spec.Resources.TotalGPUs
		if err := is(run, rqv1.RunRunning, ""); err != nil || run.Status.Width.Allocated != total {
			return fmt.Errorf("it holds %d of %d GPUs: %s: %w", run.Status.Width.Allocated, total, run.Status.Message, err)
		}
		if !r.own && run.Status.Restarts != nil {
			return fmt.Errorf("it counts as a restart: %+v", run.Status.Restarts)
		}
		pods := r.podsOf("train")
		for name, pod := range pods {
			if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s on %q", name, pod.Status.Phase, pod.Spec.NodeName)
			}
		}
		return differs(names, slices.Sorted(maps.Keys(pods)))
	})
	for name, pod := range r.podsOf("train") {
		if pod.UID != r.was[name].UID && name != r.rank && !r.all && !r.young &&
			pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) {
			r.t.Errorf("%s: %s was replaced as well", r.name, name)
		}
	}
	if pod := r.podsOf("other")["other-0"]; pod.UID != r.other.UID {
		r.t.Errorf("%s: the other Run was touched", r.name)
	}
	r.settled()
	free := int32(5*8) - 8 - total
	for name, pod := range r.podsOf("another") {
		if pod.Spec.NodeName != "" && name != "" {
			free -= 4
		}
	}
	if _, spare := r.was["train-s0"]; spare {
		free -= 8
	}
	r.submit("next", free, inPods(min(free, 8)))
	r.await("next", rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", free))
	eventually(r.t, r.name+": the node is to be as any other", func() error { return r.isBack(r.node) })
	r.settled()
}
