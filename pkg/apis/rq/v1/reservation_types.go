package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`
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

// ReservationStatus is how a Reservation stands.
type ReservationStatus struct {
	// state of the Reservation.
	// +optional
	State ReservationState `json:"state,omitempty"`
	// reason why the Run could not start.
	// +optional
	Reason string `json:"reason,omitempty"`
	// countdownSeconds until earliestStart, when the status was written.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CountdownSeconds *int64 `json:"countdownSeconds,omitempty"`
	// forecast of what happens at earliestStart.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
	// conflictSet lists the Runs that may be cut.
	// +optional
	// +listType=atomic
	ConflictSet []Conflict `json:"conflictSet,omitempty"`
	// lottery is the public record of the draw.
	// +optional
	Lottery *Lottery `json:"lottery,omitempty"`
}

// Forecast is what is expected at a Reservation's earliestStart.
type Forecast struct {
	// deficitGPUs is the number of GPUs that are short in scope.
	// +kubebuilder:validation:Minimum=0
	DeficitGPUs int32 `json:"deficitGPUs"`
	// scope in which they are short.
	// +optional
	Scope string `json:"scope,omitempty"`
	// confidence in the date.
	// +kubebuilder:validation:Enum=conservative;window-aligned;known-release
	Confidence string `json:"confidence"`
	// remedies are sentences that say what will be done, with amounts.
	// +optional
	// +listType=atomic
	Remedies []string `json:"remedies,omitempty"`
}

// Conflict is a Run that may be cut by an activation.
type Conflict struct {
	// run that may be cut.
	Run NamespacedName `json:"run"`
	// action that would be taken.
	// +kubebuilder:validation:Enum=Reclaim;DropSpare;Shrink;Lottery
	Action string `json:"action"`
	// gpus that it would free.
	// +kubebuilder:validation:Minimum=1
	GPUs int32 `json:"gpus"`
	// probability of the action, from 0 to 1, as a decimal.
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]+)?|1(\.0+)?)$`
	Probability string `json:"probability"`
}

// Lottery is the public record of a draw: commit, reveal and result (rule R21).
type Lottery struct {
	// commitment is the SHA-256 of the nonce, in hexadecimal, published with the Reservation.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Commitment string `json:"commitment,omitempty"`
	// nonce in hexadecimal, revealed after the draw.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Nonce string `json:"nonce,omitempty"`
	// conflictSetDigest is the SHA-256 of the ordered conflict set with its odds, in hexadecimal.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ConflictSetDigest string `json:"conflictSetDigest,omitempty"`
	// draws in order.
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
}
