package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TimeoutAction is what becomes of a Run whose maxDuration is over (rule R22).
//
// +kubebuilder:validation:Enum=Fail;Requeue
type TimeoutAction string

// Values of TimeoutAction.
const (
	// TimeoutFail: the Run is Failed.
	TimeoutFail TimeoutAction = "Fail"
	// TimeoutRequeue: the Run waits again, at the end of the line.
	TimeoutRequeue TimeoutAction = "Requeue"
)

// RunTimeouts tells of the attempts that ran for the Run's maxDuration and after which it waited again (rule R22).
// Restarts because of a program's failures are counted apart.
type RunTimeouts struct {
	// count is how many attempts did.
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// last is when the last of them was over: from then on the Run has its place in line. RFC 3339.
	Last metav1.Time `json:"last"`
	// attempt is the number of that attempt, as its GPU leases say it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempt int32 `json:"attempt,omitempty"`
}
