package audit

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Look is what one look at a world has come to.
type Look struct {
	found map[string]Finding
	// closed are the ends of the Leases that are closed, and open what the others are charged, for the next look.
	closed map[types.UID]closing
	open   map[string]budget.Charge
	budgets
}

// closing is how a Lease ended.
type closing struct {
	lease  Object
	ended  int64
	reason rqv1.ClosureReason
}

// budgets is what a look saw of Budgets, to be compared with the GPU leases of two looks.
type budgets struct {
	seen    map[string]*rqv1.Budget
	at      time.Time
	settled bool
	// promised are GPUs that activations are about to hold, by envelope; starting those of Runs that may be placed and
	// have no GPU leases yet, and shards those of opportunistic ones: whoever pays for them, a status counts them already.
	promised         map[budget.Key]int
	starting, shards int
}
