package book

// state is how far a gang has come that is to start or, once its Run runs, what it lacks or grows by. It follows from
// the Run and its pods, so that it never says anything else than they do.
type state int

const (
	gangUnseen     state = iota // pods or Leases of a Run are known, and the Run is not
	gangEnded                   // the Run is over
	gangSuspended               // the Run is suspended, and holds what has not gone yet
	gangClearing                // has its places, and waits for other pods to leave them or for other rules to accept them
	gangShapeless               // it has no shape on the nodes that there are
	gangUnpaid                  // nobody can pay for it, so that it has no pods
	gangSweeping                // opportunistic: each of its shards comes and goes by itself
	gangIncomplete              // it lacks its leader or, once it has started, other pods, or old ones have not left
	gangQueued                  // it can be planned, and some of its pods have no place
	gangPlaced                  // all have places, and are on their way to the barrier
	gangCommitted               // all have reached the barrier, which is open
	gangRunning                 // nothing is missing from a Run that runs
)

func (s state) String() string {
	return [...]string{"Unseen", "Ended", "Suspended", "Clearing", "Shapeless", "Unpaid", "Sweeping", "Incomplete",
		"Queued", "Placed", "Committed", "Running"}[s]
}

// state returns how far the gang has come.
func (g *gang) state() state {
	switch {
	case g.run == nil:
		return gangUnseen
	case g.over():
		return gangEnded
	case g.suspended():
		return gangSuspended
	case g.awaiting > 0, g.sweepsLater(), g.unsure() && g.underWay():
		return gangClearing
	case g.shape != nil:
		return gangShapeless
	case g.unpaid:
		return gangUnpaid
	case g.opportunistic():
		return gangSweeping
	case !g.complete(), g.comesLate() && g.leader() == nil && g.ready():
		return gangIncomplete
	case g.leader() != nil:
		return gangQueued
	case !g.ready() || !g.committed && !g.started():
		return gangPlaced
	case !g.started():
		return gangCommitted
	}
	return gangRunning
}

// holdsBack says why a pod without a place is held back in a state in which its gang cannot be planned.
func (s state) holdsBack() string {
	switch s {
	case gangUnseen:
		return "waiting until the scheduler has read the Run"
	case gangSuspended:
		return whileSuspended
	case gangSweeping:
		return waitsForIdle
	case gangClearing:
		return whileLeaving
	case gangUnpaid:
		return waitsForMoney
	}
	return "waiting for the Run's other pods to be created"
}

// Why pods are held back: in the order of the states, and last those of a gang that another pod of it plans for.
const (
	whileSuspended = "the Run is suspended"
	whileWithdrawn = "the Run is made anew, as its group says by now"
	whileLeaving   = "waiting for Runs that are being cut to release their GPUs"
	whileAsking    = "checking other scheduling rules before any Run is cut"
	waitsForMoney  = "waiting for a Budget that can pay"
	waitsForIdle   = "waiting for idle GPUs"
	waitsForPlan   = "waiting for the gang to be planned"
	waitsItsTurn   = "waiting for the ranks before it: pods that must be spread over nodes come one after the other"
)
