package ending

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Place is where on a pod a sign stands.
type Place string

// Values of Place.
const (
	// InCondition is the reason of the condition DisruptionTarget, which says who is about to end the pod.
	InCondition Place = "condition DisruptionTarget"
	// InStatus is the reason in the pod's status.
	InStatus Place = "status.reason"
	// InDevices is the health of a device that a container has been given.
	InDevices Place = "container's allocatedResourcesStatus"
	// InContainer is the reason for which a container terminated.
	InContainer Place = "container's reason"
	// InReadiness is the condition Ready, which a rank lacks by its Run's startupDeadline.
	InReadiness Place = "condition Ready"
)

// Sign is a word on a pod that tells why it ended.
type Sign struct {
	Place Place
	// Word is the reason that is written there. One that ends in an asterisk stands for all that begin so.
	Word string
	// Cause is what follows.
	Cause rqv1.EndCause
	// From says which part of Kubernetes writes it, and when.
	From string
}

// Signs are the words that are known, in the order in which they are looked for.
var Signs = []Sign{
	{InCondition, string(rqv1.ClosedRandomPreempt), rqv1.CauseScheduler,
		"jobtree, before it ends a Run that was drawn"},
	{InCondition, string(rqv1.ClosedPriorityPreempt), rqv1.CauseScheduler,
		"jobtree, before it ends a Run for a lost rank of its owner's of higher priority"},
	{InCondition, string(rqv1.ClosedShrink), rqv1.CauseScheduler,
		"jobtree, before it makes a Run narrower for another"},
	{InCondition, string(rqv1.ClosedDropSpare), rqv1.CauseScheduler,
		"jobtree, before a spare goes for another Run"},
	{InCondition, string(rqv1.ClosedReclaimedBySpare), rqv1.CauseScheduler,
		"jobtree, before an opportunistic pod gives way to a rank"},
	{InCondition, string(rqv1.ClosedReclaimed), rqv1.CauseScheduler,
		"jobtree, before an opportunistic pod gives its GPUs back"},
	{InCondition, string(rqv1.ClosedReclaimedQuota), rqv1.CauseScheduler,
		"jobtree, before an opportunistic pod gives its quota back"},
	{InCondition, string(rqv1.ClosedMaintenance), rqv1.CauseScheduler,
		"jobtree, before a pod leaves a node of which maintenance is announced"},
	{InCondition, "DeletionByJobtree", rqv1.CauseScheduler,
		"jobtree, before it ends a pod that others have made, for whatever reason"},
	{InCondition, corev1.PodReasonPreemptionByScheduler, rqv1.CauseScheduler,
		"a scheduler, before it deletes a pod for one of higher priority"},
	{InCondition, corev1.PodReasonTerminationByKubelet, rqv1.CauseNode,
		"the kubelet, at node pressure, at a graceful shutdown of the node, or for a critical pod"},
	{InCondition, "EvictionByEvictionAPI", rqv1.CauseNode,
		"the API server, at an eviction, such as kubectl drain's"},
	{InCondition, "DeletionByTaintManager", rqv1.CauseNode,
		"the taint eviction controller, for a taint with effect NoExecute"},
	{InCondition, "DeletionByPodGC", rqv1.CauseNode,
		"the pod garbage collector, for a pod whose Node is gone or out of service"},
	{InStatus, "NodeShutdown", rqv1.CauseNode, "the kubelet: the node is shutting down and takes no pods"},
	{InStatus, "Terminated", rqv1.CauseNode, "the kubelet: the node was shut down"},
	{InStatus, "Shutdown", rqv1.CauseNode, "the kubelet before Kubernetes 1.22: the node was shut down"},
	{InStatus, "NodeLost", rqv1.CauseNode, "the node lifecycle controller: the kubelet does not answer"},
	{InStatus, "Preempting", rqv1.CauseNode, "the kubelet, for a critical pod"},
	{InStatus, "NodeAffinity", rqv1.CauseNode, "the kubelet at admission: the node's labels have changed"},
	{InStatus, "NodeName", rqv1.CauseNode, "the kubelet at admission"},
	{InStatus, "NodePorts", rqv1.CauseNode, "the kubelet at admission: a host port is taken"},
	{InStatus, "OutOf*", rqv1.CauseNode,
		"the kubelet at admission: the node has less of a resource than it said, as OutOfnvidia.com/gpu"},
	{InStatus, "UnexpectedAdmissionError", rqv1.CauseNode,
		"the kubelet at admission, when a device plugin fails"},
	{InStatus, "TopologyAffinityError", rqv1.CauseNode, "the kubelet's topology manager at admission"},
	{InStatus, "SMTAlignmentError", rqv1.CauseNode, "the kubelet's CPU manager at admission"},
	{InStatus, "InvalidNodeInfo", rqv1.CauseNode, "the kubelet at admission"},
	{InStatus, "DeadlineExceeded", rqv1.CauseUser,
		"the kubelet: the template's activeDeadlineSeconds are over; ranks that jobtree ends with their failed Run show it " +
			"too"},
	{InStatus, "Evicted", rqv1.CauseProgram,
		"the kubelet, without the condition: the pod has used more ephemeral storage than its limit"},
	{InDevices, string(corev1.ResourceHealthStatusUnhealthy), rqv1.CauseNode,
		"the kubelet, by its device plugin's word: a device of the pod is broken, whether the pod runs or has failed"},
	{InContainer, "ContainerStatusUnknown", rqv1.CauseNode,
		"the kubelet: it does not know any more how the container ended"},
	{InContainer, "OOMKilled", rqv1.CauseProgram,
		"the kernel: the container has used more memory than its limit"},
	{InContainer, "*", rqv1.CauseProgram, "the container runtime"},
	{InReadiness, NotReady, rqv1.CauseProgram,
		"jobtree: it is not True when the Run's startupDeadline is over"},
}

// says reports whether a sign stands for a word.
func (s *Sign) says(word string) bool {
	if begin, open := strings.CutSuffix(s.Word, "*"); open {
		return strings.HasPrefix(word, begin)
	}
	return s.Word == word
}

// known returns the cause that a word stands for in a place, or another where it is not known.
func known(place Place, word string, other rqv1.EndCause) rqv1.EndCause {
	for i := range Signs {
		if s := &Signs[i]; s.Place == place && s.says(word) {
			return s.Cause
		}
	}
	return other
}
