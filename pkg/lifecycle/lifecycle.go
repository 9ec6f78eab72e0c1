// Package lifecycle decides what a Run needs next: which pods to create and delete, which Leases to close, and what its
// status says. It is pure: it sees what has been observed and returns a decision, and deciding again on the same
// observation gives the same decision.
package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Observed is a Run as it stands.
type Observed struct {
	// Run is nil once it is gone.
	Run *rqv1.Run
	// Demand is the Run's shape, and Shape why it has none.
	Demand plan.Demand
	Shape  *plan.Refusal
	// Refusal is why the gang was refused when it was last planned; nil when it was not.
	Refusal *plan.Refusal
	// Problem is what the API server last held against the Run's pods; empty when it took them.
	Problem string
	// Pods carry the Run's label and Leases are open and name the Run, whatever its UID.
	Pods   []*corev1.Pod
	Leases []*rqv1.Lease
	// HasNode reports whether a node exists, and HasLease whether a pod's Lease is known to be open, even if it is not among
	// Leases yet.
	HasNode  func(name string) bool
	HasLease func(pod types.UID) bool
	// Overdraft returns how many GPUs of a Lease are beyond what its payer allows.
	Overdraft func(lease types.NamespacedName) int
	Now       time.Time
	// GangDeadline is the longest that a gang may be partly bound.
	GangDeadline time.Duration
	// Pods are made with these.
	GPUResource, PauseImage string
}

// Closing is a Lease to close.
type Closing struct {
	Lease  *rqv1.Lease
	Reason rqv1.ClosureReason
}

// Evidence is what must be seen on the API server itself, not in a cache, before a pod is deleted for it.
type Evidence string

// Kinds of evidence.
const (
	// NoEvidence: the pod is deleted by decision.
	NoEvidence Evidence = ""
	// NodeGone: the pod's node does not exist.
	NodeGone Evidence = "NodeGone"
	// Unpaid: the pod is bound and has no open Lease.
	Unpaid Evidence = "Unpaid"
)

// Deletion is a pod to delete once there is evidence for it. Node is the pod's, or its Lease's while it is not bound.
type Deletion struct {
	Pod  *corev1.Pod
	If   Evidence
	Node string
}

// Decision is what to do, in this order: delete pods, close Leases, create the Service and pods, write the status.
type Decision struct {
	Delete []Deletion
	// Close lists Leases whose pods have ended, or are not there: the latter is to be seen on the API server too.
	Close   []Closing
	Service *corev1.Service
	Create  []*corev1.Pod
	// Status is the status to write; nil when it stands as it should.
	Status *rqv1.RunStatus
	// After is when to look again although nothing has happened, and Retry when to plan again; 0 for never.
	After, Retry time.Duration
}

// Decide returns what a Run needs next.
func Decide(o Observed) Decision {
	s := newState(o)
	d := Decision{Close: s.closings()}
	if o.Run == nil || o.Run.DeletionTimestamp != nil {
		return d // pods go with their owner; their Leases close as they do
	}
	switch {
	case s.phase == rqv1.RunCompleted:
		d.Delete = deletions(s.spares, present)
	case s.phase == rqv1.RunFailed:
		d.Delete = append(deletions(s.pods, alive), deletions(s.spares, present)...)
	case s.requeued(), s.overdue():
		// Also what has ended: every rank runs again.
		d.Delete = append(deletions(s.pods, present), deletions(s.spares, present)...)
	case o.Shape == nil:
		d.Delete = s.suspects()
		d.Create = s.absent()
		if len(d.Create) > 0 {
			d.Service = service(o.Run)
		}
		d.After, d.Retry = s.untilDue(), s.untilRetry()
	}
	d.Status = s.status()
	return d
}

// state is an observation sorted by index.
type state struct {
	Observed
	phase  rqv1.RunPhase
	pods   []*corev1.Pod // the active ones, by index; nil where there is none
	spares []*corev1.Pod // likewise
	byUID  map[types.UID]*corev1.Pod
	taken  map[string]bool // names of pods, also of an earlier Run's of the same name
	leases map[types.UID]*rqv1.Lease
}

func newState(o Observed) *state {
	s := &state{Observed: o, byUID: map[types.UID]*corev1.Pod{}, taken: map[string]bool{}, leases: map[types.UID]*rqv1.Lease{}}
	if o.Shape == nil {
		s.pods, s.spares = make([]*corev1.Pod, o.Demand.Pods()), make([]*corev1.Pod, o.Demand.Spares())
	}
	for _, pod := range o.Pods {
		s.byUID[pod.UID] = pod
		s.taken[pod.Name] = true
		run, part, ok := book.Membership(pod)
		all := s.pods
		if part.Spare {
			all = s.spares
		}
		if ok && o.Run != nil && run == o.Run.UID && part.Index < len(all) {
			all[part.Index] = pod
		}
	}
	for _, lease := range o.Leases {
		s.leases[types.UID(lease.Labels[book.LabelPod])] = lease
	}
	if o.Run != nil {
		s.phase = s.nextPhase()
	}
	return s
}

// nextPhase returns the phase that the pods have brought the Run to. A Run that has ended stays ended.
func (s *state) nextPhase() rqv1.RunPhase {
	switch was := s.Run.Status.Phase; {
	case was == rqv1.RunCompleted || was == rqv1.RunFailed:
		return was
	case s.Shape != nil:
		return rqv1.RunPending
	}
	started, succeeded := 0, 0
	for _, pod := range s.pods {
		switch {
		case pod == nil:
		case pod.Status.Phase == corev1.PodFailed && !s.lost(pod):
			return rqv1.RunFailed
		case pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp == nil:
			succeeded++
			started++
		case s.runs(pod):
			started++
		}
	}
	switch {
	case succeeded == len(s.pods):
		return rqv1.RunCompleted
	case s.expired():
		return rqv1.RunFailed
	case s.Run.Status.Phase == rqv1.RunRunning && s.unreplaceable():
		return s.afterLoss()
	case s.Run.Status.Phase == rqv1.RunRunning || started == len(s.pods) && s.standBy():
		return rqv1.RunRunning
	}
	return rqv1.RunPending
}

// runs reports whether a pod is bound and has its Lease.
func (s *state) runs(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && s.leases[pod.UID] != nil
}

// standBy reports whether every spare is bound.
func (s *state) standBy() bool {
	return !slices.ContainsFunc(s.spares, func(pod *corev1.Pod) bool { return pod == nil || !s.runs(pod) })
}

// lost reports whether a pod failed because its node went away, or because it was told to go: not by its own doing.
func (s *state) lost(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" && !s.HasNode(pod.Spec.NodeName)
}

// unreplaceable reports whether an active pod of a Run that has started is gone and there is no room for another (R27).
func (s *state) unreplaceable() bool {
	return s.Refusal != nil && !s.Refusal.Spare && s.Refusal.Reason != plan.NodesRejected && slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
		return pod != nil && pod.Spec.NodeName == ""
	})
}

// afterLoss returns the phase of a Run that cannot go on: Pending again if it declares a checkpoint, and Failed otherwise
// (R22).
func (s *state) afterLoss() rqv1.RunPhase {
	if s.Run.Spec.Runtime != nil && s.Run.Spec.Runtime.Checkpoint != nil {
		return rqv1.RunPending
	}
	return rqv1.RunFailed
}

// requeued reports whether the Run gives up what it holds and waits for its turn again.
func (s *state) requeued() bool {
	return s.Run.Status.Phase == rqv1.RunRunning && s.phase == rqv1.RunPending
}

// overdue reports whether a gang that has not started has held GPUs for longer than its deadline (I9).
func (s *state) overdue() bool {
	since, ok := s.startingSince()
	return ok && s.phase == rqv1.RunPending && s.Now.Sub(since) > s.GangDeadline
}

// startingSince returns when the pods that are starting opened their first Lease: all pods of a gang that has not started,
// and those of a running one that are not bound. It returns false when none of them has a Lease.
func (s *state) startingSince() (time.Time, bool) {
	var first time.Time
	for _, pod := range slices.Concat(s.pods, s.spares) {
		if !alive(pod) || s.leases[pod.UID] == nil || s.phase == rqv1.RunRunning && pod.Spec.NodeName != "" {
			continue
		}
		if start := s.leases[pod.UID].Spec.Start.Time; first.IsZero() || start.Before(first) {
			first = start
		}
	}
	return first, !first.IsZero()
}

// fresh reports whether nothing is known of a new Run beyond what its default status says: most Runs start or are refused
// soon, with one write.
func (s *state) fresh() bool {
	return len(s.Run.Status.Conditions) == 0 && s.phase == rqv1.RunPending && s.Shape == nil && s.Refusal == nil &&
		s.Problem == "" && !s.overdue()
}

// retryRejected is how long a gang waits before nodes that other scheduling rules rejected are tried again: those rules'
// own causes may pass without an event.
const retryRejected = 5 * time.Second

// untilOverdue returns when a gang that has begun to start passes its deadline.
func (s *state) untilOverdue() time.Duration {
	if since, ok := s.startingSince(); ok {
		return since.Add(s.GangDeadline).Sub(s.Now) + time.Second
	}
	return 0
}

// untilRetry returns when nodes that other scheduling rules rejected are worth another try.
func (s *state) untilRetry() time.Duration {
	if s.Refusal != nil && s.Refusal.Reason == plan.NodesRejected {
		return retryRejected
	}
	return 0
}

// holds reports whether a pod has not ended.
func holds(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// alive reports whether a pod holds or wants GPUs and has not been told to go.
func alive(pod *corev1.Pod) bool {
	return present(pod) && holds(pod)
}

// present reports whether a pod is there and has not been told to go.
func present(pod *corev1.Pod) bool { return pod != nil && pod.DeletionTimestamp == nil }

// deletions returns the pods of a kind, to be deleted.
func deletions(pods []*corev1.Pod, kind func(*corev1.Pod) bool) []Deletion {
	var out []Deletion
	for _, pod := range pods {
		if kind(pod) {
			out = append(out, Deletion{Pod: pod})
		}
	}
	return out
}

// suspects returns the pods that seem to have lost their node or to run without a Lease, those that have a Lease and
// cannot be bound where it says, and the spares that have ended: others take their place.
func (s *state) suspects() []Deletion {
	var out []Deletion
	for _, pod := range s.pods {
		if pod != nil && pod.Status.Phase != corev1.PodSucceeded {
			out = append(out, s.suspect(pod)...)
		}
	}
	for _, pod := range s.spares {
		if pod == nil {
			continue
		}
		found := s.suspect(pod)
		if len(found) == 0 && present(pod) && !holds(pod) {
			found = []Deletion{{Pod: pod}}
		}
		out = append(out, found...)
	}
	return out
}

func (s *state) suspect(pod *corev1.Pod) []Deletion {
	node, stuck := pod.Spec.NodeName, false
	if lease := s.leases[pod.UID]; lease != nil && node == "" {
		node = lease.Spec.Slice.Nodes[0].Name
		stuck = s.Now.Sub(lease.Spec.Start.Time) > s.GangDeadline
	}
	switch {
	case stuck && alive(pod):
		return []Deletion{{pod, NoEvidence, node}}
	case node == "":
	case !s.HasNode(node):
		return []Deletion{{pod, NodeGone, node}}
	case pod.Spec.NodeName != "" && alive(pod) && s.leases[pod.UID] == nil && !s.HasLease(pod.UID):
		return []Deletion{{pod, Unpaid, node}}
	}
	return nil
}

// closings returns the Leases whose pods hold nothing any more. A pod that terminates still holds its GPUs (R28).
func (s *state) closings() []Closing {
	var out []Closing
	for _, lease := range s.Leases {
		pod := s.byUID[types.UID(lease.Labels[book.LabelPod])]
		switch {
		case pod == nil, pod.DeletionTimestamp != nil && !holds(pod):
			out = append(out, Closing{lease, s.reasonGone(lease)})
		case pod.Status.Phase == corev1.PodSucceeded:
			out = append(out, Closing{lease, rqv1.ClosedCompleted})
		case pod.Status.Phase == corev1.PodFailed && !s.HasNode(pod.Spec.NodeName):
			out = append(out, Closing{lease, rqv1.ClosedNodeFailure})
		case pod.Status.Phase == corev1.PodFailed:
			out = append(out, Closing{lease, rqv1.ClosedFailed})
		}
	}
	return out
}

// reasonGone says why a Lease whose pod is gone ended.
func (s *state) reasonGone(lease *rqv1.Lease) rqv1.ClosureReason {
	switch {
	case !s.HasNode(lease.Spec.Slice.Nodes[0].Name):
		return rqv1.ClosedNodeFailure
	case s.Run == nil || s.Run.UID != lease.Spec.RunRef.UID || s.Run.DeletionTimestamp != nil:
		return rqv1.ClosedDeleted
	case s.phase == rqv1.RunFailed:
		return rqv1.ClosedFailed
	case s.phase == rqv1.RunPending:
		return rqv1.ClosedUnwound
	case s.phase == rqv1.RunCompleted && lease.Spec.Slice.Role == rqv1.RoleSpare:
		return rqv1.ClosedCompleted
	}
	return rqv1.ClosedDeleted
}
