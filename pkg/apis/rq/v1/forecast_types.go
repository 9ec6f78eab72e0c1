package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunForecast is when a suspended Run would start if it were resumed, by what is known of the cluster.
type RunForecast struct {
	// at is when the forecast was made. It is rewritten when its content changes.
	At metav1.Time `json:"at"`
	// gpus is how many GPUs it would start with at once, not counting spares; 0 when it would wait.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GPUs int32 `json:"gpus,omitempty"`
	// earliestStart is when it would start if it had to wait; absent if it would have no date.
	// +optional
	EarliestStart *metav1.Time `json:"earliestStart,omitempty"`
	// expected says what would be short and what would be done about it at earliestStart, as a Reservation's forecast does;
	// absent without a date.
	// +optional
	Expected *Forecast `json:"expected,omitempty"`
	// message says in a sentence why the Run would wait; empty when it would not.
	// +optional
	Message string `json:"message,omitempty"`
	// refusal is the same as data.
	// +optional
	Refusal *RunRefusal `json:"refusal,omitempty"`
	// remarks say what its shape costs on the nodes there are and with those who would pay: GPUs of nodes that its pods leave
	// over, what its spares come to in whole pods, and whether they replace a node.
	// +optional
	// +listType=atomic
	Remarks []string `json:"remarks,omitempty"`
	// notAsked are scheduling rules that the Run's pods use and that the forecast did not check.
	// +optional
	// +listType=atomic
	NotAsked []string `json:"notAsked,omitempty"`
}

// RunQueue is where a Run stands in line.
type RunQueue struct {
	// ahead is how many Runs that wait for the same GPU type come before this one.
	// +kubebuilder:validation:Minimum=0
	Ahead int32 `json:"ahead"`
	// of is how many Runs wait for the GPU type, including this one.
	// +kubebuilder:validation:Minimum=1
	Of int32 `json:"of"`
	// at is when this was true.
	At metav1.Time `json:"at"`
}

// MostRisks is how many Reservations a Run's atRisk lists.
const MostRisks = 16

// RunRisk is a Reservation whose activation may cut a Run.
type RunRisk struct {
	// reservation whose activation threatens the Run, as namespace/name.
	Reservation string `json:"reservation"`
	// at is when it activates.
	At metav1.Time `json:"at"`
	// probability of being cut, whatever is done, from 0 to 1, as a decimal.
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]+)?|1(\.0+)?)$`
	Probability string `json:"probability"`
	// cuts are what may be done to the Run, the most severe first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	Cuts []RiskCut `json:"cuts,omitempty"`
}

// RiskCut is one of the things that an activation may do to a Run.
type RiskCut struct {
	// action that may be taken: Lottery ends the Run, Shrink makes it narrower, DropSpare takes spares from it.
	Action CutAction `json:"action"`
	// gpus that the Run would lose, of those that the Reservation needs.
	// +kubebuilder:validation:Minimum=1
	GPUs int32 `json:"gpus"`
	// width in GPUs that the Run would be shrunk to, the narrowest if there are several; absent for other actions.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Width int32 `json:"width,omitempty"`
	// probability that it is done, from 0 to 1, as a decimal.
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]+)?|1(\.0+)?)$`
	Probability string `json:"probability"`
}
