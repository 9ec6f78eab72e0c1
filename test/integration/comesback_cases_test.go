package integration

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// comeback is a failure that costs the Run train a rank, and what takes it back. By then the rank's next pod is there
// and may not be bound yet.
type comeback struct {
	// start submits the Run and waits until it runs; nil for the usual one.
	start func(s *site)
	sign  func(s *site, node string)
	undo  func(s *site, node string)
	// movable is nil once the sign may be undone; nil for when the rank has a next pod.
	movable func(s *site, was corev1.Pod) error
	// after is done once the next pod may be bound.
	after func(s *site)
	// rank is the pod of the rank, train-1 unless it says so.
	rank string
	// own says that the rank has died because of its program, and all that every rank has.
	own, all bool
	// young says that the Run need not run when the sign comes.
	young bool
}

// usual starts a Run of two ranks and a spare.
func usual(s *site, changes ...func(*rqv1.Run)) {
	s.t.Helper()
	s.submit("train", 16, append([]func(*rqv1.Run){inPods(8), inGroups(16), withSpares(8), checkpoint(time.Hour)},
		changes...)...)
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
}

// comebacks are the failures by name.
var comebacks = map[string]comeback{
	"program": {own: true, start: func(s *site) {
		usual(s)
		s.ends("train-1", exits(7, "no such file"))
		s.restarted("train", "restart 1 of 3")
	}, sign: func(s *site, node string) {
		s.ends("train-1", exits(7, "no such file"))
		s.cordon(node, true)
	}, undo: givenBack},
	"two-owners": {rank: "train-0", own: true, start: func(s *site) {
		s.submit("train", 4, inPods(4), restarts(3, nil))
		s.await("train", rqv1.RunRunning, "bound 4 GPUs")
		s.submit("another", 4, inPods(4), s.by("another"), restarts(3, nil))
		s.await("another", rqv1.RunRunning, "bound 4 GPUs")
	}, sign: func(s *site, node string) {
		s.ends("train-0", exits(1, "Xid 79"))
		s.ends("another-0", exits(1, "Xid 79"))
	}, undo: func(s *site, node string) { s.runs("nodes clear " + node) }},
	"at-the-start": {young: true, start: func(s *site) {
		s.submit("train", 16, inPods(8), inGroups(16), withSpares(8))
	}, sign: func(s *site, node string) {
		s.ends("train-1", corev1.PodStatus{Reason: "OutOfnvidia.com/gpu"})
		s.gpus(node, 0)
	}, undo: func(s *site, node string) { s.gpus(node, 8) }},
	"shutdown": {sign: func(s *site, node string) {
		s.ends("train-1", disruptedBy("TerminationByKubelet", "Terminated"))
		s.says(node, string(corev1.NodeReady), corev1.ConditionFalse)
	}, undo: func(s *site, node string) { s.says(node, string(corev1.NodeReady), corev1.ConditionTrue) }},
	"eviction": {start: func(s *site) { usual(s, slowly) }, sign: func(s *site, node string) {
		s.cordon(node, true)
		s.evict("train-1")
	}, undo: givenBack},
	"turned-away": {sign: func(s *site, node string) {
		s.ends("train-1", corev1.PodStatus{Reason: "OutOfnvidia.com/gpu", Message: "Node didn't have enough resource"})
		s.gpus(node, 0)
	}, undo: func(s *site, node string) { s.gpus(node, 8) }},
	"device": {start: func(s *site) {
		usual(s, slowly, annotated("pod-delete.stage.kwok.x-k8s.io/delay", "15s"))
	}, sign: func(s *site, _ string) { s.breaks("train-1", corev1.ResourceHealthStatusUnhealthy) },
		undo: func(s *site, _ string) { s.breaks("train-1", corev1.ResourceHealthStatusHealthy) },
		movable: func(s *site, was corev1.Pod) error {
			if pod := s.podsOf("train")["train-1"]; pod.UID == was.UID && pod.DeletionTimestamp == nil {
				return fmt.Errorf("it has not been told to go")
			}
			return nil
		}},
	"all-ranks": {own: true, all: true, sign: func(s *site, node string) {
		end := exits(1, "NCCL timeout")
		s.ends("train-0", end)
		s.ends("train-1", end)
		s.cordon(node, true)
	}, undo: givenBack},
	"never-ready": {own: true, start: func(s *site) {
		usual(s, annotated("pod-unready.stage.kwok.x-k8s.io/name", "train-1"), func(r *rqv1.Run) {
			r.Spec.Runtime.StartupDeadline = &metav1.Duration{Duration: time.Minute}
		})
	}, sign: func(*site, string) {}, undo: func(s *site, node string) {
		s.cordon(node, true)
		s.cordon(node, false)
	}, after: func(s *site) { s.becomesReady("train-1") }},
	"maintenance": {start: func(s *site) { usual(s, slowly) }, sign: func(s *site, node string) {
		s.runs("maintenance set " + node + " --start 0s --for 1h")
		s.evict("train-1")
	}, undo: func(s *site, node string) { s.runs("maintenance cancel " + node) }},
	"spot": {start: func(s *site) { usual(s, slowly) }, sign: func(s *site, node string) {
		s.spotNotice(node)
		s.evict("train-1")
	}, undo: givenBack},
	"nvsentinel": {sign: func(s *site, node string) {
		s.quarantine(node)
		s.says(node, fellOff, corev1.ConditionTrue)
	}, undo: func(s *site, node string) {
		s.says(node, fellOff, corev1.ConditionFalse)
		s.unquarantine(node, false)
	}},
	"silence": {sign: func(s *site, node string) { s.silence(node) }, undo: func(s *site, node string) {
		s.revive(node)
		givenBack(s, node)
	}},
	"not-ready": {sign: func(s *site, node string) {
		s.says(node, string(corev1.NodeReady), corev1.ConditionFalse)
	}, undo: func(s *site, node string) {
		s.says(node, string(corev1.NodeReady), corev1.ConditionTrue)
		givenBack(s, node)
	}},
	"out-of-service": {sign: func(s *site, node string) { s.strike(node) }, undo: givenBack},
	"deleted": {sign: func(s *site, node string) {
		s.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	}, undo: func(s *site, node string) { s.load(*s.node(strings.TrimPrefix(node, s.namespace+"-"), "d0")) }},
}

// cordon cordons a node or uncordons it.
func (s *site) cordon(node string, is bool) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) { n.Spec.Unschedulable = is })
}

// givenBack is what a person does to a node that is well again.
func givenBack(s *site, node string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Spec.Unschedulable, n.Spec.Taints = false, nil
	})
}

// evict evicts a pod of a Run that takes its time to end, as kubectl drain does.
func (s *site) evict(pod string) {
	s.t.Helper()
	was := s.podsOf(s.runOf(pod))[pod]
	eventually(s.t, "the eviction of "+pod, func() error {
		return s.kube.PolicyV1().Evictions(s.namespace).Evict(s.t.Context(),
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}})
	})
	s.endsEvicted(&was)
}

// endsEvicted has the kubelet of a pod say how it ended once it has been evicted, before the pod is gone.
func (s *site) endsEvicted(was *corev1.Pod) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to say that "+was.Name+" has ended", func() error {
		pod := &corev1.Pod{}
		err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(was), pod)
		switch {
		case apierrors.IsNotFound(err) || err == nil && pod.UID != was.UID:
			return nil
		case err != nil:
			return err
		case pod.DeletionTimestamp == nil:
			return fmt.Errorf("it has not been told to go")
		}
		pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodFailed, exits(143, "").ContainerStatuses
		return client.IgnoreNotFound(s.api.Status().Update(s.t.Context(), pod))
	})
}

// slowly has the pods of a Run take some seconds to end.
func slowly(r *rqv1.Run) {
	annotated("pod-delete.stage.kwok.x-k8s.io/delay", "3s")(r)
	grace := int64(60)
	template(r).Spec.TerminationGracePeriodSeconds = &grace
}

// gpus has a node's kubelet say how many GPUs its device plugin finds.
func (s *site) gpus(node string, count int64) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to say how many GPUs there are", func() error {
		n := &corev1.Node{}
		if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: node}, n); err != nil {
			return err
		}
		n.Status.Allocatable[gpuResource] = *resource.NewQuantity(count, resource.DecimalSI)
		return s.api.Status().Update(s.t.Context(), n)
	})
}

// becomesReady has a pod that was never ready be so.
func (s *site) becomesReady(name string) {
	s.t.Helper()
	s.becomesReadyOf(s.runOf(name), name)
}

// becomesReadyOf has a pod of a Run that runs be ready from now on.
func (s *site) becomesReadyOf(run, name string) {
	s.t.Helper()
	eventually(s.t, name+" is to become ready", func() error {
		pod := s.podsOf(run)[name]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Status != corev1.ConditionTrue {
				c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.Now()
			}
		}
		return s.api.Status().Update(s.t.Context(), &pod)
	})
}

// spotNotice does to a node what aws-node-termination-handler does at a spot interruption notice.
func (s *site) spotNotice(node string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Labels["aws-node-termination-handler/action"] = "cordon-and-drain"
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "aws-node-termination-handler/spot-itn",
			Value: "i-0123456789", Effect: corev1.TaintEffectNoSchedule})
	})
}
