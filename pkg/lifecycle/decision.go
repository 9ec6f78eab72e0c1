package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Closing is a Lease to close once there is evidence for its reason.
type Closing struct {
	Lease  *rqv1.Lease
	Reason rqv1.ClosureReason
	// Cause is by whose doing it ended.
	Cause rqv1.EndCause
	// If is NodeStands or NoEvidence.
	If Evidence
	// Ended is when it ended; zero for now.
	Ended time.Time
	// LostSince is since when its work is lost, and Others how many other GPUs of its Run have worked in vain since then
	// too; zero where no work is lost.
	LostSince time.Time
	Others    int32
}

// Evidence is what must be seen on the API server itself, not in a cache, before a pod is deleted or a Lease closed for
// it.
type Evidence string

// Kinds of evidence.
const (
	// NoEvidence: the pod is deleted by decision.
	NoEvidence Evidence = ""
	// NodeLost: the pod's node does not exist, or is recorded as lost.
	NodeLost Evidence = "NodeLost"
	// NodeStands: the Lease's node exists, is not recorded as lost, and does not say of itself that it is out of service.
	NodeStands Evidence = "NodeStands"
	// Unpaid: the pod is bound and has no open Lease.
	Unpaid Evidence = "Unpaid"
	// Unbound: there is no pod of the name that the Run has made and that is bound.
	Unbound Evidence = "Unbound"
	// RunGone: there is no Run of the pod's name with the UID that made it.
	RunGone Evidence = "RunGone"
)

// Deletion is a pod to delete once there is evidence for it.
type Deletion struct {
	Pod *corev1.Pod
	If  Evidence
	// Node is the pod's, or its Lease's while the pod is not bound.
	Node string
	// About is the pod that the evidence is about; nil for the one that goes.
	About *corev1.Pod
	// Run made the pod; set where the evidence is about that Run, or about what it has made.
	Run types.UID
	// GraceSeconds are what the pod has to end where that is less than its own; nil where it is not.
	GraceSeconds *int64
	// Notice is what the pod is told first; nil when it is not cut but deleted for another reason.
	Notice *Notice
	// By is when a pod is to have ended that is not deleted but ended where it is; zero for one that is deleted.
	By time.Time
	// Why is the reason for which it goes, for logs.
	Why string
	// Tell says why the pod goes where it has no Notice and its controller is to know that it is not to blame.
	Tell string
}

// Notice is what a pod that is cut is told before it ends (R19).
type Notice struct {
	// Reason that the pod's Lease is going to close with, and a sentence that says for whom.
	Reason  rqv1.ClosureReason
	Message string
	// GraceSeconds are what it has to end: its own, as far as that is allowed, and a notice period at least.
	GraceSeconds int64
}

// Decision is what to do, in this order: delete pods, create replacements, close Leases, create the Service and pods,
// write the status, delete the Run.
type Decision struct {
	Delete []Deletion
	// Replace lists pods that record which spares make room for them. They come before the Leases close that tell of the
	// loss: otherwise nothing would, should this process end in between.
	Replace []*corev1.Pod
	// Close lists Leases whose pods have ended, or are not there. That a pod is not there is to be seen on the API server
	// too.
	Close []Closing
	// Outlived lists open Leases that are to say until when containers may run, which is when they end, of their pods,
	// which are gone.
	Outlived []Closing
	Service  *corev1.Service
	Create   []*corev1.Pod
	// Adopt are pods that others have made and that get ranks, and Release those that have theirs no more. They come with
	// Replace.
	Adopt   []Adoption
	Release []*corev1.Pod
	// Guard is the PodDisruptionBudget to write, and Unguard the one to delete; nil when there is none. It comes before
	// any pod is made that replaces one: until then no other may be evicted.
	Guard, Unguard *policyv1.PodDisruptionBudget
	// Evictable says that the PodDisruptionBudget, once it is written, lets somebody evict a rank.
	Evictable bool
	// Status is the status to write; nil when it stands as it should.
	Status *rqv1.RunStatus
	// Words are what pods of others are told that wait. They come after all other writes.
	Words []Word
	// Expire says that the Run's object is to be deleted, since its time is over and it holds nothing.
	Expire bool
	// After is when to look again although nothing has happened, and Retry when to plan again; 0 for never.
	After, Retry time.Duration
	// requeues says that the Run gives up what it holds and waits again, resumes that it has its place from now on, and
	// tellsShards that the status tells of shards that give way and were not told before.
	requeues, resumes, tellsShards bool
	// tellsOfGone says that the status tells how ranks ended whose pods are gone: once their Leases are closed as well
	// nothing would.
	tellsOfGone bool
}

// Starts reports whether the status is the first that says that a Run runs.
func (d *Decision) Starts(run *rqv1.Run) bool {
	return d.Status != nil && d.Status.Phase == rqv1.RunRunning && !saysRunning(run)
}

// TellFirst reports whether the status is written before pods are deleted or made: without them nothing would tell any
// more that the Run has failed, that it keeps their room or held others' places in vain, or, once the Reservation is
// over, why they were cut; and with the first of them it is planned, by the place that its status says.
func (d *Decision) TellFirst() bool {
	noticed := func(deletion Deletion) bool { return deletion.Notice != nil }
	return d.Status != nil && (d.Status.Phase == rqv1.RunFailed || d.requeues || d.resumes || d.tellsShards ||
		d.tellsOfGone || slices.ContainsFunc(d.Delete, noticed))
}

// WithoutReplacements returns the decision without the pods that replace ranks, or get them, and without the closings
// of the Leases that tell what for.
func (d Decision) WithoutReplacements() Decision {
	replaces := func(pod *corev1.Pod) bool { return pod.Annotations[rqv1.AnnotationReplaces] != "" }
	waiting := map[rank.Part]bool{}
	for _, pod := range d.Replace {
		_, part, _ := rank.Membership(pod)
		waiting[part] = true
	}
	for i := range d.Adopt {
		waiting[d.Adopt[i].part()] = true
	}
	d.Close = slices.DeleteFunc(slices.Clone(d.Close), func(c Closing) bool { return waiting[rank.Held(c.Lease)] })
	d.Create, d.Replace, d.Adopt = slices.DeleteFunc(slices.Clone(d.Create), replaces), nil, nil
	return d
}
