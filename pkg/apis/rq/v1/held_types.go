package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunHeldInVain tells of attempts in which places were held for pods that did not come: their controller was to create them
// (rule R46).
type RunHeldInVain struct {
	// count is how many attempts did, up to 6. It is halved for each hour for which the Run then ran.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=6
	Count int32 `json:"count"`
	// since is when the last of them began to hold places. RFC 3339.
	Since metav1.Time `json:"since"`
	// until is until when no places are held again for pods that do not exist yet: 2, 4, … 64 times gangDeadline after the
	// end of that attempt. RFC 3339.
	Until metav1.Time `json:"until"`
}

// MostInVain is the most attempts that are counted, and so bounds the rest after the last of them.
const MostInVain = 6

// Rests reports whether the Run may not hold places for absent pods at an instant.
func (h *RunHeldInVain) Rests(at time.Time) bool { return h != nil && at.Before(h.Until.Time) }
