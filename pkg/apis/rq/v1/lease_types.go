package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Lease is one line of the ledger: who held which GPUs, from when, and which envelope paid. One Lease is written for
// every pod, before the pod is bound. The spec never changes; the status is written when the Lease closes, and before
// that only if its pod is gone while its containers may run. A Lease has no owner reference: it outlives the Run that it
// records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=leases,shortName=gl,categories=jobtree
// +kubebuilder:selectablefield:JSONPath=`.status.closed`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="Group",type=integer,JSONPath=`.spec.groupIndex`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.slice.role`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.slice.nodes[0].name`
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=`.spec.slice.nodes[0].gpus`
// +kubebuilder:printcolumn:name="Budget",type=string,JSONPath=`.spec.payer.budget`
// +kubebuilder:printcolumn:name="Envelope",type=string,JSONPath=`.spec.paidByEnvelope`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Closed",type=string,JSONPath=`.status.closureReason`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`,priority=1
// +kubebuilder:printcolumn:name="Payer",type=string,JSONPath=`.spec.payer.owner`,priority=1
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.start`,priority=1
// +kubebuilder:printcolumn:name="Ended",type=string,JSONPath=`.status.ended`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.start`
// +kubebuilder:validation:XValidation:rule=`!has(self.status) || !has(self.status.ended) || self.status.ended >= self.spec.start`,message=`a Lease may not end before it starts`,fieldPath=".status.ended"
// +kubebuilder:validation:XValidation:rule=`!(has(oldSelf.status) && has(oldSelf.status.closed) && oldSelf.status.closed) || (has(self.status) && self.status == oldSelf.status)`,message=`a closed Lease never changes again`,fieldPath=".status"
type Lease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the fact that the Lease records.
	// +structType=atomic
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`the spec of a Lease is immutable: what happened stays recorded as it was`
	Spec LeaseSpec `json:"spec"`
	// status says whether and why the Lease ended.
	// +optional
	// +structType=atomic
	Status LeaseStatus `json:"status,omitempty"`
}

// LeaseList is a list of Leases.
//
// +kubebuilder:object:root=true
type LeaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Lease `json:"items"`
}

// LeaseRole is the part that the leased GPUs play in their Run.
//
// +kubebuilder:validation:Enum=Active;Spare;Borrowed
type LeaseRole string

// Values of LeaseRole.
const (
	// RoleActive GPUs run a rank of the Run.
	RoleActive LeaseRole = "Active"
	// RoleSpare GPUs stand by to replace a lost node.
	RoleSpare LeaseRole = "Spare"
	// RoleBorrowed GPUs are idle ones that opportunistic work has until they are needed; no sponsor lends them.
	RoleBorrowed LeaseRole = "Borrowed"
)

// LeaseReason says why a Lease was opened.
//
// +kubebuilder:validation:Enum=Start;Grow;Swap;Restart;Repaid
type LeaseReason string

// Values of LeaseReason.
const (
	// ReasonStart: the Run started.
	ReasonStart LeaseReason = "Start"
	// ReasonGrow: the Run grew.
	ReasonGrow LeaseReason = "Grow"
	// ReasonSwap: the rank was lost with its node, its node ended it, or it left before maintenance of its node.
	ReasonSwap LeaseReason = "Swap"
	// ReasonRestart: the rank died by its program's doing and is started again (rule R34).
	ReasonRestart LeaseReason = "Restart"
	// ReasonRepaid: the pod runs on, and somebody else pays for it (rule R6).
	ReasonRepaid LeaseReason = "Repaid"
)

// ClosureReason says why a Lease was closed.
//
// +kubebuilder:validation:Enum=Completed;Failed;Deleted;Unwound;Shrink;DropSpare;RandomPreempt;NodeFailure;Swap;ReclaimedBySpare;Reclaimed;ReclaimedQuota;Evicted;Maintenance;Suspended;PriorityPreempt;TimedOut;Repaid
type ClosureReason string

// Values of ClosureReason.
const (
	// ClosedCompleted: the pod succeeded.
	ClosedCompleted ClosureReason = "Completed"
	// ClosedFailed: the pod failed, or its Run did.
	ClosedFailed ClosureReason = "Failed"
	// ClosedDeleted: the pod or its Run was deleted.
	ClosedDeleted ClosureReason = "Deleted"
	// ClosedUnwound: the gang could not be completed before its deadline, so none of it keeps its GPUs.
	ClosedUnwound ClosureReason = "Unwound"
	// ClosedShrink: the Run became narrower.
	ClosedShrink ClosureReason = "Shrink"
	// ClosedDropSpare: a spare was given up to make room.
	ClosedDropSpare ClosureReason = "DropSpare"
	// ClosedRandomPreempt: the Run's ticket was drawn in a lottery.
	ClosedRandomPreempt ClosureReason = "RandomPreempt"
	// ClosedNodeFailure: the node was lost.
	ClosedNodeFailure ClosureReason = "NodeFailure"
	// ClosedSwap: the spare took over from a lost node.
	ClosedSwap ClosureReason = "Swap"
	// ClosedReclaimedBySpare: the spare under the opportunistic tenant was needed.
	ClosedReclaimedBySpare ClosureReason = "ReclaimedBySpare"
	// ClosedReclaimed: the GPUs under the opportunistic tenant were needed by a normal Run.
	ClosedReclaimed ClosureReason = "Reclaimed"
	// ClosedReclaimedQuota: what the opportunistic tenant had of its namespace's quota was needed by a normal Run.
	ClosedReclaimedQuota ClosureReason = "ReclaimedQuota"
	// ClosedEvicted: the node, or what keeps it, ended the pod or turned it away (rule R33).
	ClosedEvicted ClosureReason = "Evicted"
	// ClosedMaintenance: the pod left its node, of which maintenance is announced (rule R35).
	ClosedMaintenance ClosureReason = "Maintenance"
	// ClosedSuspended: the Run was suspended (rule R39).
	ClosedSuspended ClosureReason = "Suspended"
	// ClosedPriorityPreempt: the Run gave its GPUs to a lost rank of a Run of the same owner that has a higher priority (rule
	// R44).
	ClosedPriorityPreempt ClosureReason = "PriorityPreempt"
	// ClosedTimedOut: the Run's maxDuration was over, and it waits to start again (rule R22).
	ClosedTimedOut ClosureReason = ReasonTimedOut
	// ClosedRepaid: the pod runs on, and another Lease of it has another payer from the same instant on (rule R6).
	ClosedRepaid ClosureReason = "Repaid"
)

// LeaseSpec is what a Lease records.
type LeaseSpec struct {
	// owner of the Run.
	Owner Owner `json:"owner"`
	// runRef is the Run that holds the GPUs.
	RunRef LeaseRunRef `json:"runRef"`
	// groupIndex is the index of the group in its Run, from 0.
	// +kubebuilder:validation:Minimum=0
	GroupIndex int32 `json:"groupIndex"`
	// cohort in which the group was started: 0 at the start, one more at each growth.
	// +kubebuilder:validation:Minimum=0
	Cohort int32 `json:"cohort"`
	// slice is what is held.
	Slice LeaseSlice `json:"slice"`
	// payer is the Budget that pays.
	Payer LeasePayer `json:"payer"`
	// paidByEnvelope is the envelope of the payer's Budget that pays.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	PaidByEnvelope string `json:"paidByEnvelope"`
	// reason why the Lease was opened.
	Reason LeaseReason `json:"reason"`
	// start is the instant from which the GPUs are held, to the microsecond.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Start metav1.MicroTime `json:"start"`
	// until is when the Run's maxDuration ends, as known at the start. Default: open.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Until *metav1.MicroTime `json:"until,omitempty"`
	// admitted is when the Run was admitted, if the Lease was opened later to replace what the Run had before; of one that is
	// repaid, since when the payer has paid. It decides which Leases count as overdraft (rule R8). Default: start.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Admitted *metav1.MicroTime `json:"admitted,omitempty"`
	// flavor is the GPU type that the envelope paid for when the Lease was opened (rule R3). Default: that of the node.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Flavor string `json:"flavor,omitempty"`
	// attempt of the Run in which the Lease was opened, counted as in the status of the Run. It tells what was held before the
	// Run last went back to waiting.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempt int32 `json:"attempt,omitempty"`
	// repaid is set if the pod had another Lease before, until somebody else paid for it. Default: none.
	// +optional
	Repaid *LeaseRepaid `json:"repaid,omitempty"`
}

// LeaseRepaid says what a Lease continues on another payer. Two pods of a Run have exchanged payers: the Leases that they
// had close at the start of this one.
type LeaseRepaid struct {
	// lease is the name of the Lease that the pod had before.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Lease string `json:"lease"`
	// with is the name of the Lease of the other pod, whose payer pays for this one now.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	With string `json:"with"`
	// heldSince is the instant from which the pod has held its GPUs, whoever paid.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	HeldSince metav1.MicroTime `json:"heldSince"`
}

// LeaseRunRef points at the Run that holds a Lease.
type LeaseRunRef struct {
	// name of the Run.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// namespace of the Run.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// uid of the Run.
	UID types.UID `json:"uid"`
}

// LeaseSlice is a set of GPUs on nodes.
type LeaseSlice struct {
	// role that the GPUs play.
	Role LeaseRole `json:"role"`
	// nodes on which GPUs are held.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Nodes []NodeGPUs `json:"nodes"`
}

// NodeGPUs is a number of GPUs on one node.
type NodeGPUs struct {
	// name of the node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// gpus held on the node.
	// +kubebuilder:validation:Minimum=1
	GPUs int32 `json:"gpus"`
}

// LeasePayer is who pays for a Lease.
type LeasePayer struct {
	// budget is the name of the Budget.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Budget string `json:"budget"`
	// owner of the Budget.
	Owner Owner `json:"owner"`
	// relation of the payer to the Run's owner when the Lease was opened (rule R2). Default: own for the Run's own owner,
	// else sponsor.
	// +optional
	Relation Relation `json:"relation,omitempty"`
	// rate at which GPU-hours are charged, from 0 to 1 in steps of 0.001 (rule R7). Default: 1.
	// +optional
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]{1,3})?|1(\.0{1,3})?)$`
	Rate string `json:"rate,omitempty"`
}

// LeaseStatus says whether and why a Lease ended.
//
// +kubebuilder:validation:XValidation:rule=`has(self.closed) && self.closed ? has(self.ended) && has(self.closureReason) : !has(self.ended) && !has(self.closureReason) && !has(self.cause)`,message=`closed: true, ended and closureReason are written together`
type LeaseStatus struct {
	// closed is true once the GPUs are no longer held.
	// +optional
	Closed bool `json:"closed,omitempty"`
	// ended is the instant at which the GPUs were released.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Ended *metav1.MicroTime `json:"ended,omitempty"`
	// closureReason says why the Lease ended.
	// +optional
	ClosureReason ClosureReason `json:"closureReason,omitempty"`
	// endsBy is set if the pod was deleted by force: its containers may use the GPUs until then, and the Lease stays open
	// (rule R28).
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	EndsBy *metav1.MicroTime `json:"endsBy,omitempty"`
	// cause of its end (rule R33).
	// +optional
	Cause EndCause `json:"cause,omitempty"`
	// lost is the work that was lost with it (rule R45): what had been done since the last save. Absent if there was none.
	// +optional
	Lost *LeaseLost `json:"lost,omitempty"`
}

// LeaseLost is work that was lost as a Lease closed, in GPU-seconds.
type LeaseLost struct {
	// gpuSeconds of the Lease's own GPUs.
	// +kubebuilder:validation:Minimum=0
	GPUSeconds int64 `json:"gpuSeconds"`
	// othersGPUSeconds of the Run's other GPUs, which also continue from the last save. If several Leases close together, only
	// one has this value.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OthersGPUSeconds int64 `json:"othersGPUSeconds,omitempty"`
}
