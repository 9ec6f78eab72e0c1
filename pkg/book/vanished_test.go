package book_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// graceful has run0 run on one of some nodes, and returns its pod, which has a minute to end.
func (s *storm) graceful(nodes int, changes ...func(*rqv1.RunSpec)) *corev1.Pod {
	s.fleet("d0", nodes)
	s.setBudget("a", "org:a", 64)
	s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, append([]func(*rqv1.RunSpec){patient(60)}, changes...)...)
	s.work()
	s.during(time.Second)
	s.work()
	s.running("run0", "although there is room")
	return s.withGrace(s.ranksOf("run0")[0].UID, 60)
}

// sparing has so many GPUs stand by in each group of a Run.
func sparing(gpus int32) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) { s.SparesPerGroup = &gpus }
}

// ranksOf returns the pods of a Run that are its ranks.
func (s *storm) ranksOf(run string) []*corev1.Pod {
	return slices.DeleteFunc(s.PodsOf(run), func(pod *corev1.Pod) bool {
		return pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)
	})
}

// withGrace gives a pod so many seconds to end.
func (w *world) withGrace(uid types.UID, seconds int64) *corev1.Pod {
	pod := w.Pods[uid].DeepCopy()
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	w.SetPod(pod)
	return pod
}

// vanishAny has a pod be deleted by force that has some time to end.
func (w *world) vanishAny(t *rapid.T) {
	if uid, ok := pick(t, "pod", w.SortedPods()); ok {
		w.withGrace(uid, rapid.SampledFrom([]int64{0, 5, 30, 600}).Draw(t, "grace"))
		w.unforeseen()
		w.Vanish(uid)
	}
}

// heldFor asserts that the Lease of a pod that is gone is open for a time, and closes then.
func (s *storm) heldFor(pod types.UID, d time.Duration, reason rqv1.ClosureReason) {
	s.t.Helper()
	since := s.Now
	for s.Now.Sub(since) < d+5*time.Second {
		s.work()
		open := s.leaseOfPod(pod).Status
		if passed := s.Now.Sub(since); open.Closed != (passed >= d) || open.Closed && open.ClosureReason != reason {
			s.t.Fatalf("after %s the Lease is %+v; it is to be open for %s\n%s", passed, open, d, s.story())
		}
		s.during(time.Second)
		s.Book.Advance(s.Now)
	}
}

func (s *storm) leaseOfPod(pod types.UID) *rqv1.Lease {
	for _, l := range s.Leases {
		if l.PodUID() == pod {
			return l
		}
	}
	s.t.Fatalf("pod %s has no Lease", pod)
	return nil
}

// TestAPodThatVanishesHoldsItsGPUs for as long as its containers may run, whatever becomes of its Run; an end that its
// kubelet has told of costs no second.
func TestAPodThatVanishesHoldsItsGPUs(t *testing.T) {
	deleted, vanishes := rqv1.ClosedDeleted, func(s *storm, pod *corev1.Pod) { s.Vanish(pod.UID) }
	ends := func(s *storm, pod *corev1.Pod) { s.DeletePod(pod.UID) }
	for name, c := range map[string]struct {
		happens func(s *storm, pod *corev1.Pod)
		held    time.Duration
		reason  rqv1.ClosureReason
		kind    func(*rqv1.RunSpec)
	}{
		"a rank":                     {vanishes, time.Minute, deleted, nil},
		"a pod of others":            {vanishes, time.Minute, deleted, theirs},
		"a shard":                    {vanishes, rules.OpportunisticGrace, deleted, opportunistic},
		"a rank that has ended":      {ends, 0, deleted, nil},
		"others' pod that has ended": {ends, 0, deleted, theirs},
		"once it had been told to go": {func(s *storm, pod *corev1.Pod) {
			s.TerminateWithin(pod.UID, nil)
			s.during(40 * time.Second)
			s.Vanish(pod.UID)
		}, 20 * time.Second, deleted, nil},
		"and nothing is decided for a while": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.during(20 * time.Second)
		}, 40 * time.Second, deleted, nil},
		"with a finalizer, once that was taken off": {func(s *storm, pod *corev1.Pod) {
			s.byForceWithFinalizer(pod)
			s.during(10 * time.Second)
			s.Vanish(pod.UID)
		}, 0, deleted, nil},
		"with a finalizer that was taken off at once": {func(s *storm, pod *corev1.Pod) {
			s.byForceWithFinalizer(pod)
			s.Vanish(pod.UID)
		}, rank.LeastGrace, deleted, nil},
		"once its time was over": {func(s *storm, pod *corev1.Pod) {
			s.leave(pod.UID, 0)
			s.during(time.Second)
			s.Vanish(pod.UID)
		}, 0, deleted, nil},
		"with more time than is allowed": {func(s *storm, pod *corev1.Pod) {
			s.withGrace(pod.UID, 7200)
			s.Vanish(pod.UID)
		}, longestGrace, deleted, nil},
		"without any time": {func(s *storm, pod *corev1.Pod) {
			s.withGrace(pod.UID, 0)
			s.Vanish(pod.UID)
		}, 0, deleted, nil},
		"before a kubelet had taken it": {func(s *storm, pod *corev1.Pod) {
			pod = pod.DeepCopy()
			pod.Status.Phase = corev1.PodPending
			s.SetPod(pod)
			s.Vanish(pod.UID)
		}, 0, deleted, nil},
		"before any container of it had begun": {func(s *storm, pod *corev1.Pod) {
			pod = pod.DeepCopy()
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, StartTime: pod.Status.StartTime,
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
			s.SetPod(pod)
			s.Vanish(pod.UID)
		}, 0, deleted, nil},
		"and who noted it had a clock that was a day ahead": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			lease := s.leaseOfPod(pod.UID).DeepCopy()
			lease.Status.EndsBy.Time = lease.Status.EndsBy.Add(24 * time.Hour)
			s.SetLease(lease)
			s.work()
			if diff := cmp.Diff(lease.Status.Lost, s.leaseOfPod(pod.UID).Status.Lost); diff != "" || lease.Status.Lost == nil {
				s.t.Errorf("work that is lost with it (-as told first +then):\n%s", diff)
			}
		}, longestGrace, deleted, nil},
		"and who noted it, of whom a successor hears, had one": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			lease := s.leaseOfPod(pod.UID).DeepCopy()
			lease.Status.EndsBy.Time = lease.Status.EndsBy.Add(24 * time.Hour)
			s.SetLease(lease)
			s.restart()
		}, longestGrace, deleted, nil},
		"and the process begins anew": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			s.during(20 * time.Second)
			s.restart()
		}, 40 * time.Second, deleted, nil},
		"and the process dies before it has written that": {func(s *storm, pod *corev1.Pod) {
			s.dies(0, sim.Closings)
			s.Vanish(pod.UID)
			s.step(s.work)
		}, 0, deleted, nil},
		"and the API server does not take that": {func(s *storm, pod *corev1.Pod) {
			s.Faults.Add(sim.Fault{Of: sim.Closings, Do: sim.Refused})
			s.Vanish(pod.UID)
		}, time.Minute, deleted, nil},
		"while no process ran": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.restart()
		}, 0, deleted, nil},
		"with its Run": {func(s *storm, pod *corev1.Pod) {
			s.ForgetRun("run0")
			s.Vanish(pod.UID)
		}, time.Minute, deleted, nil},
		"and its Run is deleted": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			s.DeleteRun("run0")
		}, time.Minute, deleted, nil},
		"and its Run is suspended": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			s.amend("run0", func(r *rqv1.RunSpec) { r.Suspend = true })
		}, time.Minute, rqv1.ClosedSuspended, nil},
		"on a node that is lost": {func(s *storm, pod *corev1.Pod) {
			s.Lose(pod.Spec.NodeName)
			s.Vanish(pod.UID)
		}, 0, rqv1.ClosedNodeFailure, nil},
		"and its node is lost then": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			s.Lose(pod.Spec.NodeName)
		}, 0, rqv1.ClosedNodeFailure, nil},
		"and its node is deleted then": {func(s *storm, pod *corev1.Pod) {
			s.Vanish(pod.UID)
			s.work()
			s.ForgetNode(pod.Spec.NodeName)
		}, 0, rqv1.ClosedNodeFailure, nil},
		"on a node that had been deleted and is back": {func(s *storm, pod *corev1.Pod) {
			node := s.Nodes[pod.Spec.NodeName]
			s.ForgetNode(node.Name)
			s.Vanish(pod.UID)
			s.SetNode(node)
		}, 0, deleted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				var changes []func(*rqv1.RunSpec)
				if c.kind != nil {
					changes = append(changes, c.kind)
				}
				pod := s.graceful(2, changes...)
				c.happens(s, pod)
				s.heldFor(pod.UID, c.held, c.reason)
			})
		})
	}
}

// byForceWithFinalizer has a pod be deleted by force that has a finalizer: its object stays, and its kubelet reads that
// it has no time.
func (s *storm) byForceWithFinalizer(pod *corev1.Pod) {
	pod, none := pod.DeepCopy(), int64(0)
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: s.Now}, &none
	s.SetPod(pod)
}

// TestALookTellsOfPodsThatNoCacheHolds, and of no others.
func TestALookTellsOfPodsThatNoCacheHolds(t *testing.T) {
	tellStorm(t, func(s *storm) {
		pod := s.graceful(2)
		of := book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: "run0"}, Run: s.Runs["run0"],
			Pods: s.PodsOf("run0"), Leases: s.OpenLeases()}
		l, _ := s.Book.Look(of)
		of.Pods = nil
		without, _ := s.Book.Look(of)
		want := []map[types.UID]bool{{}, {pod.UID: true}}
		if diff := cmp.Diff(want, []map[types.UID]bool{l.Here, without.Here}); diff != "" {
			s.t.Errorf("pods that are here (-want +got):\n%s", diff)
		}
	})
}

// Who deletes a rank's pods by force again and again has its Run hold no more than the room of one of them beside its
// own: the others find theirs.
func TestARankThatVanishesAgainAndAgain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.graceful(4)
		for range 4 {
			for _, pod := range s.ranksOf("run0") {
				if pod.Spec.NodeName != "" {
					s.withGrace(pod.UID, 60)
					s.Vanish(pod.UID)
				}
			}
			s.work()
			s.during(time.Second)
			s.work()
		}
		open := 0
		for _, l := range s.Leases {
			if !l.Status.Closed {
				open++
			}
		}
		if open > 2 {
			s.t.Fatalf("%d Leases of its only rank are open\n%s", open, s.story())
		}
		s.submit("run1", "org:a", 1, 2, 8)
		s.work()
		s.running("run1", "although two nodes are free")
		s.Now = s.Now.Add(2 * time.Minute)
		s.Book.Advance(s.Now)
		s.rounds(10)
		s.running("run0", "once their containers have ended")
	})
}

// A spare runs nothing on the GPUs that it keeps.
func TestASpareThatVanishesHoldsNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.graceful(2, sparing(8))
		spare := s.withGrace(s.pod("run0-s0"), 60)
		s.Vanish(spare.UID)
		s.heldFor(spare.UID, 0, rqv1.ClosedDeleted)
	})
}

// Its rank goes elsewhere at once if there is room or a spare, and back once the containers have ended if there is
// neither: nobody else is given that room.
func TestTheRankOfAPodThatVanishes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, others, spares int
		comes                 time.Duration
		kind                  func(*rqv1.RunSpec)
		restarts              bool
	}{
		"with room":                     {nodes: 2, others: 2},
		"with a spare":                  {nodes: 2, spares: 8, others: 0},
		"without room":                  {nodes: 1, others: 1, comes: time.Minute},
		"without room, and then anew":   {nodes: 1, others: 1, comes: time.Minute, restarts: true},
		"of others, with room":          {nodes: 2, others: 2, kind: theirs},
		"of others, with room and anew": {nodes: 2, others: 2, kind: theirs, restarts: true},
		"of others":                     {nodes: 1, others: 1, comes: time.Minute, kind: theirs},
		"of others, and then anew":      {nodes: 1, others: 1, comes: time.Minute, kind: theirs, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				changes := []func(*rqv1.RunSpec){sparing(int32(c.spares))}
				if c.kind != nil {
					changes = append(changes, c.kind)
				}
				pod := s.graceful(c.nodes, changes...)
				if c.others > 0 {
					s.submit("run1", "org:a", c.others, 1, 8)
				}
				s.work()
				s.Vanish(pod.UID)
				s.work()
				if c.restarts {
					s.restart()
				}
				for since := s.Now; s.Now.Sub(since) < c.comes+5*time.Second; s.during(time.Second) {
					s.work()
					s.Book.Advance(s.Now)
					s.work()
					placed := false
					for _, pod := range s.ranksOf("run0") {
						placed = placed || pod.Spec.NodeName != ""
					}
					if passed := s.Now.Sub(since); placed != (passed >= c.comes) {
						s.t.Fatalf("after %s the rank has its place: %v\n%s", passed, placed, s.story())
					}
				}
				s.running("run0", "although its rank could go on")
			})
		})
	}
}

// What paid for the rank is given back when the containers have ended, although another envelope pays for its next pod,
// which began at the same instant, and though that has completed by then.
func TestTheMoneyOfAPodThatVanishesIsGivenBack(t *testing.T) {
	for name, completes := range map[string]bool{"it runs": false, "it has completed": true} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 3)
				s.setBudget("a", "org:a", 16)
				s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, patient(60))
				s.work()
				s.running("run0", "although there is room")
				b := s.Budgets["a"].DeepCopy()
				other := *b.Spec.Envelopes[0].DeepCopy()
				other.Name = "other"
				b.Spec.Envelopes = append(b.Spec.Envelopes, other)
				b.Generation++
				s.SetBudget(b)
				s.Vanish(s.withGrace(s.pod("run0-0"), 60).UID)
				s.work()
				if completes {
					s.EndPod(s.pod("run0-0"), corev1.PodSucceeded)
					s.work()
				}
				for range 70 {
					s.during(time.Second)
					s.Book.Advance(s.Now)
					s.work()
				}
				if diff := cmp.Diff(s.ledgerUsage(), s.Book.Budgets.Usage()); diff != "" {
					s.t.Fatalf("(-leases +counters):\n%s\n%s", diff, s.story())
				}
			})
		})
	}
}
