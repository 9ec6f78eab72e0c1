package rank

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Cut is what the activation of a Reservation does to one Run, as the Reservation records it (R19).
type Cut struct {
	rqv1.Cut
	// Reservation that records it, and the Run that it is for.
	Reservation, For types.NamespacedName
	// At is when it was activated. What the victim opened later is not cut.
	At time.Time
}
