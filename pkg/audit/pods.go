package audit

import (
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

// pods finds bound pods of Runs without exactly one open Lease for what they hold, on their own node (I2), among them
// those whose Lease was closed while they live (I12), and other pods that our scheduler placed and that hold GPUs
// nobody pays for (I11).
func (s *sight) pods() {
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" || rank.Ended(pod) || !ours(pod) {
			continue
		}
		mine, name, node := s.podLeases[pod.UID], nameOf(pod), pod.Spec.NodeName
		if pod.Labels[rqv1.LabelRun] == "" {
			if gpus := s.gpus(pod); gpus > 0 && len(mine) != 1 {
				s.find("I11", "", aboutPod(pod, mine...), "pod %s holds %d GPUs on node %s, and %d GPU leases pay for them", name,
					gpus, node, len(mine))
			}
			continue
		}
		closed := s.ended[pod.UID]
		switch {
		case len(mine) == 0 && closed != nil:
			s.find("I12", "", aboutPod(pod, closed), "pod %s runs on node %s, and its GPU lease was closed as %s", name, node,
				closed.Status.ClosureReason)
		case len(mine) == 0 && s.unpaidAtItsEnd(pod):
			s.find("I12", "", aboutPod(pod), "pod %s ends on node %s, and its GPU lease was closed before it is gone", name,
				node)
		case len(mine) == 0 && pod.DeletionTimestamp != nil: // as may be
		case len(mine) != 1:
			s.find("I2", "", aboutPod(pod, mine...),
				"pod %s runs on node %s with %d GPUs and has %d open GPU leases instead of one", name, node, s.gpus(pod), len(mine))
		default:
			s.compare(pod, mine[0])
		}
	}
}

// unpaidAtItsEnd reports whether a pod that was told to go, and has time for that, must have a GPU lease until it is
// gone. Where its namespace goes as well the Lease may go first, and what has no time left holds nothing: its object
// waits for others' finalizers.
func (s *sight) unpaidAtItsEnd(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && s.Going != nil && !s.Going[pod.Namespace] &&
		pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds > 0
}

// compare finds what a pod's Lease says otherwise than the pod. A spare's pod asks for no GPUs: its Lease alone holds
// them.
func (s *sight) compare(pod *corev1.Pod, lease *rqv1.Lease) {
	on, name := lease.Node(), nameOf(pod)
	switch spare := lease.Spec.Slice.Role == rqv1.RoleSpare; {
	case on != pod.Spec.NodeName:
		s.find("I2", "", aboutPod(pod, lease), "pod %s runs on node %s, and its GPU lease is for node %s", name,
			pod.Spec.NodeName, on)
	case spare != isSpare(pod):
		s.find("I2", "", aboutPod(pod, lease), "pod %s has the role %s, and its GPU lease the role %s", name,
			pod.Labels[rqv1.LabelRole], lease.Spec.Slice.Role)
	case !spare && s.gpus(pod) != int(lease.GPUs()):
		s.find("I2", "", aboutPod(pod, lease), "pod %s asks for %d GPUs, and its GPU lease holds %d", name, s.gpus(pod),
			int(lease.GPUs()))
	}
}

// leases finds open Leases whose pods hold nothing, or are not there (I2). One says until when it may be without.
func (s *sight) leases() {
	for _, lease := range s.Leases {
		if lease.Status.Closed {
			continue
		}
		pod := s.podsBy[lease.PodUID()]
		switch {
		case pod == nil && s.outlived(lease):
		case pod == nil:
			s.find("I2", "", leaseObjects([]*rqv1.Lease{lease}),
				"GPU lease %s is open and holds %d GPUs of node %s, and there is no such pod",
				nameOf(lease), int(lease.GPUs()), lease.Node())
		case s.pauses(pod, lease):
		case rank.Ended(pod):
			s.find("I2", "", append(leaseObjects([]*rqv1.Lease{lease}), object("Pod", pod)),
				"GPU lease %s is open and holds %d GPUs of node %s, and its pod has %s", nameOf(lease), int(lease.GPUs()),
				lease.Node(), endedAs(pod))
		case s.Settled && pod.Spec.NodeName == "":
			s.find("I2", "", append(leaseObjects([]*rqv1.Lease{lease}), object("Pod", pod)),
				"GPU lease %s is open and holds %d GPUs of node %s, and its pod is not bound", nameOf(lease), int(lease.GPUs()),
				lease.Node())
		}
	}
}

// outlived reports whether containers of a Lease's pod may run although the pod is gone, or have just ended.
func (s *sight) outlived(lease *rqv1.Lease) bool {
	by := lease.Status.EndsBy
	return by != nil && s.podsBy[lease.PodUID()] == nil && s.At.Sub(by.Time) <= late
}

// pauses reports whether a pod is of a rank that has died and is started again once its pause is over (R34): it
// holds its GPUs until then.
func (s *sight) pauses(pod *corev1.Pod, lease *rqv1.Lease) bool {
	run := s.runsBy[lease.Spec.RunRef.UID]
	end, failed := ending.Of(pod)
	return failed && !s.Settled && run != nil && run.Status.Phase == rqv1.RunRunning &&
		restart.RulesOf(&run.Spec).Limit > 0 && s.At.Sub(end.At).Abs() <= restart.Pause+late
}

func endedAs(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded {
		return "succeeded"
	}
	return "failed"
}
