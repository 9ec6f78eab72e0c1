package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MostRisks is how many Reservations a Run's atRisk lists.
const MostRisks = 16

// RunRisk is a Reservation whose activation may cut a Run.
type RunRisk struct {
	// reservation whose activation threatens the Run, as namespace/name.
	Reservation string `json:"reservation"`
	// at is when it activates.
	At metav1.Time `json:"at"`
	// probability of being cut, from 0 to 1, as a decimal.
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]+)?|1(\.0+)?)$`
	Probability string `json:"probability"`
}
