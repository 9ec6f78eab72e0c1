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
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Observed is a Run as it stands: data alone, so that it can be kept and decided on again.
type Observed struct {
	book.Objects
	book.Look
	// Problem is what the API server last held against the Run's pods; empty when it took them.
	Problem string
	Now     time.Time
	Rules
}

// Rules are the parts of the configuration that decisions go by.
type Rules struct {
	// GangDeadline is the longest that a gang may be partly bound, NoticePeriod the time that pods which are cut have to end,
	// at least, and OpportunisticGrace that of shards which give way, at most.
	GangDeadline, NoticePeriod, OpportunisticGrace time.Duration
	// MaxGracePeriod is the longest that a pod is made to take to end (R37).
	MaxGracePeriod time.Duration
	// Pods are made with these.
	GPUResource, PauseImage string
}

// RulesOf returns what decisions go by of a configuration.
func RulesOf(args *config.Args) Rules {
	return Rules{GangDeadline: args.GangDeadline.Duration, NoticePeriod: args.NoticePeriod.Duration,
		OpportunisticGrace: args.OpportunisticGrace.Duration, MaxGracePeriod: args.MaxGracePeriod.Duration,
		GPUResource: args.GPUResource, PauseImage: args.PauseImage}
}

// Waits returns the Reservation that the Run waits for; nil when it waits for none.
func (o *Observed) Waits() *rqv1.Reservation {
	for _, r := range o.Reservations {
		if !r.Ended() {
			return r
		}
	}
	return nil
}

// Closing is a Lease to close.
type Closing struct {
	Lease  *rqv1.Lease
	Reason rqv1.ClosureReason
	// Ended is when it ended; zero for now.
	Ended time.Time
}

// Evidence is what must be seen on the API server itself, not in a cache, before a pod is deleted for it.
type Evidence string

// Kinds of evidence.
const (
	// NoEvidence: the pod is deleted by decision.
	NoEvidence Evidence = ""
	// NodeLost: the pod's node does not exist, or is recorded as lost.
	NodeLost Evidence = "NodeLost"
	// Unpaid: the pod is bound and has no open Lease.
	Unpaid Evidence = "Unpaid"
	// RunGone: there is no Run of the pod's name with the UID that made it.
	RunGone Evidence = "RunGone"
)

// Deletion is a pod to delete once there is evidence for it. Node is the pod's, or its Lease's while it is not bound.
type Deletion struct {
	Pod  *corev1.Pod
	If   Evidence
	Node string
	// Run made the pod; set where it is about that Run.
	Run types.UID
	// GraceSeconds are what the pod has to end where that is less than its own; nil where it is not.
	GraceSeconds *int64
	// Notice is what the pod is told first; nil when it is not cut but deleted for another reason.
	Notice *Notice
}

// Decision is what to do, in this order: delete pods, create replacements, close Leases, create the Service and pods, write the
// status.
type Decision struct {
	Delete []Deletion
	// Replace lists pods that record which spares make room for them. They come before the Leases close that tell of the loss:
	// otherwise nothing would, should this process end in between.
	Replace []*corev1.Pod
	// Close lists Leases whose pods have ended, or are not there: the latter is to be seen on the API server too.
	Close   []Closing
	Service *corev1.Service
	Create  []*corev1.Pod
	// Status is the status to write; nil when it stands as it should.
	Status *rqv1.RunStatus
	// After is when to look again although nothing has happened, and Retry when to plan again; 0 for never.
	After, Retry time.Duration
	requeues     bool
}

// TellFirst reports whether the status is written before pods are deleted: without them nothing would tell any more that the Run
// has failed, that it keeps their room, or, once the Reservation is over, why they were cut.
func (d *Decision) TellFirst() bool {
	noticed := func(deletion Deletion) bool { return deletion.Notice != nil }
	return d.Status != nil && (d.Status.Phase == rqv1.RunFailed || d.requeues || slices.ContainsFunc(d.Delete, noticed))
}

// Decide returns what a Run needs next.
func Decide(o Observed) Decision {
	s := newState(o)
	d := Decision{Close: s.closings()}
	if !s.stays() {
		d.Delete = s.bounded(s.orphans(s.stranded(nil)))
		d.Status = s.farewell()
		return d // Leases close as the pods go
	}
	switch {
	case s.phase == rqv1.RunCompleted, s.phase == rqv1.RunFailed:
		d.Delete = slices.Concat(s.deletions(s.pods, alive), s.deletions(s.spares, present), s.deletions(s.beyond, alive))
	case s.requeued(), s.overdue(), s.edited():
		// Also what has ended: every rank runs again.
		d.Delete = slices.Concat(s.deletions(s.pods, present), s.deletions(s.spares, present), s.deletions(s.beyond, present))
	case o.Shape == nil:
		d.Delete = s.leaving()
		d.Replace, d.Create = s.absent()
		if len(d.Create) > 0 && o.Run.Status.Phase != rqv1.RunRunning { // one that runs has had it since it started
			d.Service = service(o.Run)
		}
		d.After, d.Retry = s.untilDue(), s.untilRetry()
	default:
		d.Delete = s.deletions(s.spares, present) // nobody is left that they could replace
	}
	d.Delete = s.bounded(s.orphans(s.stranded(d.Delete)))
	d.Status, d.requeues = s.status(), s.requeued() && s.cut == nil
	return d
}

// state is an observation sorted by index.
type state struct {
	Observed
	phase  rqv1.RunPhase
	pods   []*corev1.Pod // the active ones, by index; nil where there is none
	spares []*corev1.Pod // likewise
	beyond []*corev1.Pod // the Run's, of either role, beyond the width that it has
	// granted is the width that the Run may have, in GPUs, growing the one that a cohort grows it to, 0 when none does, and
	// planned the one that the book plans it at.
	granted, growing, planned int32
	cut                       *rank.Cut // what ends the Run as it runs now; nil when nothing does
	said                      *toldShards
	waitsFor                  *rqv1.Reservation
	// claims are the pods that take the places of spares, by the spare's UID, and relief the replacements to be made, by rank.
	claims map[types.UID]*corev1.Pod
	relief map[int]rank.Replacement
	byUID  map[types.UID]*corev1.Pod
	taken  map[string]bool // names of pods, also of an earlier Run's of the same name
	leases map[types.UID]*rqv1.Lease
}

func newState(o Observed) *state {
	s := &state{Observed: o, waitsFor: o.Waits(), byUID: map[types.UID]*corev1.Pod{}, taken: map[string]bool{}, leases: map[types.UID]*rqv1.Lease{}}
	if o.Shape == nil && s.stays() {
		s.grant()
	}
	s.sort()
	for _, lease := range o.Leases {
		s.leases[lease.PodUID()] = lease
	}
	if s.stays() {
		s.said = whoGaveWay(o.Run)
		s.settleGrowth()
		s.cut = s.ending()
		if !s.opportunistic() {
			s.claim()
			s.relieve()
			s.narrow()
		}
		s.phase = s.nextPhase()
	}
	return s
}

// sort puts the Run's pods where they belong at the width that it has.
func (s *state) sort() {
	o := &s.Observed
	s.pods, s.spares, s.beyond = nil, nil, nil
	if o.Shape == nil {
		s.pods, s.spares = make([]*corev1.Pod, s.Demand.Pods()), make([]*corev1.Pod, s.Demand.Spares())
	}
	for _, pod := range o.Pods {
		s.byUID[pod.UID] = pod
		s.taken[pod.Name] = true
		run, part, ok := rank.Membership(pod)
		if !ok || o.Run == nil || run != o.Run.UID {
			continue
		}
		switch {
		case part.Spare && o.Shape != nil:
			s.spares = append(s.spares, pod)
		case part.Spare && part.Index < len(s.spares):
			s.spares[part.Index] = pod
		case !part.Spare && part.Index < len(s.pods):
			s.pods[part.Index] = pod
		case o.Shape == nil:
			s.beyond = append(s.beyond, pod)
		}
	}
}

// nextPhase returns the phase that the pods have brought the Run to. A Run that has ended stays ended.
func (s *state) nextPhase() rqv1.RunPhase {
	switch was := s.Run.Status.Phase; {
	case was == rqv1.RunCompleted || was == rqv1.RunFailed:
		return was
	case s.Shape != nil:
		return rqv1.RunPending
	case s.opportunistic():
		return s.shardsPhase()
	}
	started, succeeded := 0, 0
	pods := s.core()
	for _, pod := range pods {
		switch {
		case pod == nil, s.doomed(pod):
		case pod.Status.Phase == corev1.PodFailed && !s.lost(pod):
			return rqv1.RunFailed
		case pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp == nil:
			succeeded++
			started++
		case s.runs(pod) && pod.DeletionTimestamp == nil:
			started++
		}
	}
	switch {
	case succeeded == len(pods):
		return rqv1.RunCompleted
	case s.expired():
		return rqv1.RunFailed
	case s.cut != nil, s.unreplaceable():
		return s.afterLoss()
	case s.Run.Status.Phase == rqv1.RunRunning || started == len(pods) && s.standBy() && !s.edited():
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
	return pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" && !s.Stands(pod.Spec.NodeName)
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
	return s.Run.Status.Phase == rqv1.RunRunning && s.phase == rqv1.RunPending && !s.opportunistic()
}

// overdue reports whether a gang that has not started has held GPUs for longer than its deadline (I9).
func (s *state) overdue() bool {
	since, ok := s.startingSince()
	return ok && s.phase == rqv1.RunPending && !s.opportunistic() && s.Now.Sub(since) > s.GangDeadline
}

// startingSince returns when the pods that are starting opened their first Lease: all pods of a gang that has not started,
// also those beyond the width that it desires by now, and those of a running one that are not bound. It returns false when none of them has a Lease.
func (s *state) startingSince() (time.Time, bool) {
	var first time.Time
	for _, pod := range slices.Concat(s.pods, s.spares, s.beyond) {
		if !alive(pod) || s.doomed(pod) || s.leases[pod.UID] == nil || s.phase == rqv1.RunRunning && pod.Spec.NodeName != "" {
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
		s.Problem == "" && !s.overdue() && !s.edited() && s.cappedGrace() == "" && !s.givesWay()
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

// untilRetry returns when a refusal is worth another try that may pass without an event.
func (s *state) untilRetry() time.Duration {
	if s.Refusal != nil && s.Refusal.Passes() {
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
