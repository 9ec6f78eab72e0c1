package rank

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Cut is what the activation of a Reservation does to one Run, as the Reservation records it (R19), or what a lost rank
// of a Run of the same owner with a higher priority does to it (R44).
type Cut struct {
	rqv1.Cut
	// Reservation that records it, and the Run that it is for.
	Reservation, For types.NamespacedName
	// ForRank says that it is for a lost rank. No Reservation records it, and what it does is no lottery's.
	ForRank bool
	// At is when it was activated. What the victim opened later is not cut.
	At time.Time
}
