package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reservation is the promise made to a Run that cannot start now: when it starts, what stands in its way, and what will
// be done about it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rsv,categories=jobtree
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.earliestStart`
// +kubebuilder:printcolumn:name="Deficit",type=integer,JSONPath=`.status.forecast.deficitGPUs`
// +kubebuilder:printcolumn:name="Confidence",type=string,JSONPath=`.status.forecast.confidence`
// +kubebuilder:printcolumn:name="Conflicts",type=integer,JSONPath=`.status.conflicts.total`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Reservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is promised.
	Spec ReservationSpec `json:"spec"`
	// status is how the promise stands.
	// +optional
	Status ReservationStatus `json:"status,omitempty"`
}

// ReservationList is a list of Reservations.
//
// +kubebuilder:object:root=true
type ReservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Reservation `json:"items"`
}

// ReservationSpec is what a Reservation promises.
type ReservationSpec struct {
	// runRef is the Run that waits.
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`runRef is fixed once a Reservation is created`
	RunRef NamespacedName `json:"runRef"`
	// intendedSlice is where the Run is going to start.
	// +optional
	IntendedSlice *IntendedSlice `json:"intendedSlice,omitempty"`
	// payingEnvelopes are going to pay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	PayingEnvelopes []PayingEnvelope `json:"payingEnvelopes,omitempty"`
	// earliestStart is when the Run is going to start (rule R17).
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	EarliestStart metav1.Time `json:"earliestStart"`
}

// IntendedSlice is where a Run is going to start.
type IntendedSlice struct {
	// domain holds the topology labels of the narrowest domain that contains the slice.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Domain map[string]string `json:"domain,omitempty"`
	// nodes of the slice, by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50000
	Nodes []string `json:"nodes,omitempty"`
}

// PayingEnvelope is an envelope that is going to pay.
type PayingEnvelope struct {
	// budget is the name of the Budget.
	// +kubebuilder:validation:MinLength=1
	Budget string `json:"budget"`
	// envelope is the name of the envelope in the Budget.
	// +kubebuilder:validation:MinLength=1
	Envelope string `json:"envelope"`
	// gpus that it is going to pay for.
	// +kubebuilder:validation:Minimum=1
	GPUs int32 `json:"gpus"`
}

// ReservationState is how a Reservation stands.
//
// +kubebuilder:validation:Enum=Pending;Activating;Released;Canceled
type ReservationState string

// Values of ReservationState.
const (
	ReservationPending    ReservationState = "Pending"
	ReservationActivating ReservationState = "Activating"
	ReservationReleased   ReservationState = "Released"
	ReservationCanceled   ReservationState = "Canceled"
)

// MostForecastConflicts is how many entries of a conflict set are listed before it is fixed.
const MostForecastConflicts = 256

// ReservationStatus is how a Reservation stands.
//
// +kubebuilder:validation:XValidation:rule=`has(self.activatedAt) || !has(self.conflictSet) || size(self.conflictSet) <= 256`,message=`conflictSet lists at most 256 entries until activatedAt is set`,fieldPath=".conflictSet"
type ReservationStatus struct {
	// state of the Reservation.
	// +optional
	State ReservationState `json:"state,omitempty"`
	// reason says in a sentence why the Run could not start, or how the Reservation ended.
	// +optional
	Reason string `json:"reason,omitempty"`
	// countdownSeconds until earliestStart, when the status was written: earliestStart itself is exact.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CountdownSeconds *int64 `json:"countdownSeconds,omitempty"`
	// forecast of what happens at earliestStart.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
	// conflictSet lists what may be cut, in the order that conflictSetDigest hashes: what is on loan, spares, steps of elastic
	// Runs, and the tickets of the lottery by owner, namespace and name. Until activatedAt is set it is a forecast with the 256
	// likeliest entries; from then on it is complete and does not change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16384
	ConflictSet []Conflict `json:"conflictSet,omitempty"`
	// conflicts says how much may be cut in total, whether listed in conflictSet or not; absent when nothing may be cut.
	// +optional
	Conflicts *ConflictTotal `json:"conflicts,omitempty"`
	// lottery is the public record of the draw.
	// +optional
	Lottery *Lottery `json:"lottery,omitempty"`
	// activatedAt is when the conflict set was fixed, to the microsecond. GPUs that a victim got later are not cut.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ActivatedAt *metav1.MicroTime `json:"activatedAt,omitempty"`
	// cuts are what the activation does to other Runs, in order. They are carried out after they are written here.
	// +optional
	// +listType=atomic
	Cuts []Cut `json:"cuts,omitempty"`
	// cause says in one word why the Run did not start although others were cut, or chosen to be: VictimStayed, a pod that was
	// cut was still there 30 seconds after its grace period; NodesRejected, other scheduling rules rejected its nodes;
	// RoomTaken, something else took the GPUs; CalledOff, somebody called the activation off; Suspended, the Run was suspended.
	// +optional
	Cause CancelCause `json:"cause,omitempty"`
	// calledOff says who called the activation off, when and why (rule R36); empty unless somebody did.
	// +optional
	CalledOff string `json:"calledOff,omitempty"`
	// endedAt is when the Reservation was Released or Canceled. It is kept for as long as closed GPU leases are.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// CancelCause is why a Run did not start by an activation (invariant I10).
//
// +kubebuilder:validation:Enum=VictimStayed;NodesRejected;RoomTaken;CalledOff;Suspended
type CancelCause string

// Values of CancelCause.
const (
	CanceledVictimStayed  CancelCause = "VictimStayed"
	CanceledNodesRejected CancelCause = "NodesRejected"
	CanceledRoomTaken     CancelCause = "RoomTaken"
	CanceledCalledOff     CancelCause = "CalledOff"
	CanceledSuspended     CancelCause = "Suspended"
)

// Forecast is what is expected at a Reservation's earliestStart.
type Forecast struct {
	// deficitGPUs is the number of GPUs that are short in scope.
	// +kubebuilder:validation:Minimum=0
	DeficitGPUs int32 `json:"deficitGPUs"`
	// scope in which they are short: topology labels, such as `region=us-west,fabric.domain=A`, with the values of one label
	// joined by `|` when the slice lies in several domains.
	// +optional
	Scope string `json:"scope,omitempty"`
	// confidence in the date: known-release if GPUs or money will be free by then, window-aligned if a budget window opens,
	// conservative if other Runs will be cut.
	// +kubebuilder:validation:Enum=conservative;window-aligned;known-release
	Confidence string `json:"confidence"`
	// remedies are sentences that say what will be done, with amounts.
	// +optional
	// +listType=atomic
	Remedies []string `json:"remedies,omitempty"`
}

// Values of Forecast's confidence.
const (
	ConfidenceConservative  = "conservative"
	ConfidenceWindowAligned = "window-aligned"
	ConfidenceKnownRelease  = "known-release"
)

// CutAction is what an activation does to a Run that holds GPUs (rule R19).
//
// +kubebuilder:validation:Enum=Return;DropSpare;Shrink;Lottery
type CutAction string

// Values of CutAction, in the order in which they are tried.
const (
	// CutReturn gives back what a Run has grown into beyond its total. It is no cut of the Run: that was on loan (rule R23).
	CutReturn    CutAction = "Return"
	CutDropSpare CutAction = "DropSpare"
	CutShrink    CutAction = "Shrink"
	CutLottery   CutAction = "Lottery"
)

// Conflict is a Run that may be cut by an activation.
type Conflict struct {
	// run that may be cut.
	Run NamespacedName `json:"run"`
	// owner of the Run.
	Owner Owner `json:"owner"`
	// action that would be taken.
	Action CutAction `json:"action"`
	// gpus that it would free, in addition to the Run's other entries.
	// +kubebuilder:validation:Minimum=1
	GPUs int32 `json:"gpus"`
	// width in GPUs that a Run would be shrunk to, the narrowest if there are several; absent for other actions. It is not
	// included in the lottery's hash.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Width int32 `json:"width,omitempty"`
	// probability that it is taken, from 0 to 1, as a decimal.
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]+)?|1(\.0+)?)$`
	Probability string `json:"probability"`
	// priority of a Run that may be drawn, among the Runs of its owner; absent if all Runs of the owner that may be drawn have
	// the same. Runs with a lower priority may pay for it (rule R44).
	// +optional
	Priority *int32 `json:"priority,omitempty"`
}

// ConflictTotal is how much may be cut by an activation in all.
type ConflictTotal struct {
	// total is the number of entries.
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`
	// gpus is what all of them would free together.
	// +kubebuilder:validation:Minimum=0
	GPUs int32 `json:"gpus"`
}

// Lottery is the public record of a draw: commit, reveal and result (rule R21).
type Lottery struct {
	// commitment is the SHA-256 of the nonce, in hexadecimal, published with the Reservation.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Commitment string `json:"commitment,omitempty"`
	// conflictSetDigest is the SHA-256 of the ordered conflict set with its odds, in hexadecimal, published at activation.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ConflictSetDigest string `json:"conflictSetDigest,omitempty"`
	// nonce in hexadecimal, revealed with the draws.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Nonce string `json:"nonce,omitempty"`
	// odds says how the probabilities of the conflict set were computed: `exact`, or `sampled` with the size of the sample and
	// the error, such as `sampled 400, within 0.05 at 95 %`.
	// +optional
	Odds string `json:"odds,omitempty"`
	// draws in order. A Run that was drawn but turned out not to be needed is not among the cuts.
	// +optional
	// +listType=atomic
	Draws []Draw `json:"draws,omitempty"`
}

// Draw is one ticket drawn.
type Draw struct {
	// owner drawn first.
	Owner Owner `json:"owner"`
	// run drawn among the owner's tickets.
	Run NamespacedName `json:"run"`
	// paidBy are the Runs that end instead of the drawn one: they have the same owner and a lower priority, and may be drawn
	// (rule R44). Absent if the drawn Run itself ends or turned out not to be needed.
	// +optional
	// +listType=atomic
	PaidBy []NamespacedName `json:"paidBy,omitempty"`
}

// Cut is what an activation does to one Run.
type Cut struct {
	// run that is cut.
	Run NamespacedName `json:"run"`
	// uid of the Run.
	UID types.UID `json:"uid"`
	// action taken: Lottery ends all that the Run held, DropSpare the spares listed, Shrink and Return what is beyond width,
	// which for Return is the Run's total at least.
	Action CutAction `json:"action"`
	// gpus that it frees.
	// +kubebuilder:validation:Minimum=1
	GPUs int32 `json:"gpus"`
	// width that a Run is shrunk to, in GPUs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Width *int32 `json:"width,omitempty"`
	// spares that are dropped, by index.
	// +optional
	// +listType=atomic
	Spares []int32 `json:"spares,omitempty"`
}
