package book

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// prospect is when a gang that waits is going to start.
type prospect struct {
	// since is when the gang was first refused: others may be cut for it from a lead after that on (R17).
	since time.Time
	// promise is when and where it starts; nil when it has no date. looked is when that was worked out, and seen the
	// epoch.
	promise *forecast.Promise
	looked  time.Time
	seen    int64
	// onRecord is what its Reservation says of whom it may cut, until it is worked out whether that stands, or what has
	// been decided on, until it is told who is cut; nil then.
	onRecord *forecast.Promise
	// pledged is what it was promised for which money has been found since, until it has been planned with its pods: what
	// it is to be paid from is kept for it until then.
	pledged *forecast.Promise
	// keeping is what its owner's envelopes keep for it, which is first in the owner's line: with its date, which is far
	// off, or with none.
	keeping *forecast.Promise
	// usurped says who has taken what the gang was promised when that was lost; empty while it has a promise.
	usurped string
	// ripe says that it has been found that the gang's date has come: what is promised follows from its next cycle.
	ripe bool
	// queue is its place in line as it was told last; nil for one that is forecast.
	queue *QueuePlace
	// reservation is the gang's own as the API has it; nil when there is none that has not ended.
	reservation *rqv1.Reservation
	// activation is what has been decided at the gang's turn and waits to be published; nil when nothing is.
	activation *Activation
	// asksAgain is from when on it may ask again for what is on loan, since that came to nothing (R23).
	asksAgain time.Time
	// restraint is what holds its activation back (R36).
	restraint restraint
	// awaiting is how many pods are still to end before the gang, which has its places, may take them.
	awaiting int
	// freeBy is when those are to be gone whom it waits for although nobody was cut for it.
	freeBy time.Time
	// turn is when others could be cut for the gang that is promised to start without.
	turn time.Time
	// stuck are the pods that were to make room for the gang and have not gone (R37).
	stuck []Stuck
	// rebuff is the last activation that other scheduling rules have made vain, if any.
	rebuff rebuff
	// room is what is kept for the gang while it is planned again.
	room room
	// unpaid says that nobody can pay for the gang, so that it has no pods, and asked that somebody may by now.
	unpaid, asked bool
}

// QueuePlace is where a Run that has no date stands among those that wait for its GPU type.
type QueuePlace struct {
	// Ahead is how many Runs wait before it, and Of how many do in all.
	Ahead, Of int
	At        time.Time
	// None says that the Run was forecast, and that nothing that is known of lets it start.
	None bool
	// far says that the Run was not forecast; else it was, and has no date.
	far bool
	// swapped says that it has exchanged its place with another of its owner since.
	swapped bool
}

// past reports whether a place is so far from another, in Runs ahead, that people are told: it is written a few times
// only while a Run comes from the end of a long line to its head. That anybody is ahead is told always.
func (p *QueuePlace) past(ahead int) bool {
	return ahead != p.Ahead && (p.swapped || p.Ahead == 0 || 4*ahead <= 3*p.Ahead || 4*ahead >= 5*p.Ahead+4*dated)
}

// dated is how many of the Runs that wait for the same of a GPU type are forecast, the oldest: a date further back
// would rest on so many others that it would not hold. A Run that has a date keeps it while it is among keptDates.
const (
	dated     = 32
	keptDates = 2 * dated
)

// owedBy returns the promise by which something is kept for a gang that it is to be paid from; nil where nothing is.
func (p *prospect) owedBy() *forecast.Promise { return cmp.Or(p.keeping, p.promised()) }

// promised returns the promise by which something is kept until a date; nil where there is none.
func (p *prospect) promised() *forecast.Promise { return cmp.Or(p.promise, p.onRecord, p.pledged) }

// undated reports whether it has not been worked out yet if a gang has a date.
func (p *prospect) undated() bool {
	return p.promise == nil && (p.looked.IsZero() || p.seen < 0 || p.ripe)
}

// activating reports whether the gang's turn has come and it has not ended.
func (p *prospect) activating() bool {
	return p.reservation != nil && p.reservation.Status.State == rqv1.ReservationActivating
}

// decides reports whether it has been decided who is cut for the gang, and has not been told yet.
func (p *prospect) decides() bool {
	return p.activation != nil && !p.activation.Failed && !(p.reservation != nil && revealed(p.reservation))
}

// activatedAt returns when it was decided who is cut for a gang; zero if nobody is.
func (p *prospect) activatedAt() time.Time {
	if p.activating() && p.reservation.Status.ActivatedAt != nil {
		return p.reservation.Status.ActivatedAt.Time
	}
	return time.Time{}
}

// vain reports whether the gang's activation has failed for want of nodes that accept it: nobody is cut for it anew.
func (p *prospect) vain() bool {
	return p.activation != nil && p.activation.Cause == rqv1.CanceledNodesRejected
}

// dueAt returns when something is to be done about a gang's promise: on its date or, if that rests on what leaves by
// itself, when its turn comes, from which on nobody younger takes that. One whose cuts are held back waits for as long.
func (p *prospect) dueAt() time.Time {
	if !p.turn.IsZero() && p.turn.Before(p.promise.At) {
		return p.turn
	}
	if p.promise.Returns() {
		return p.promise.At
	}
	return latest(p.promise.At, p.restraint.until)
}

// dateHasCome reports whether the gang was to start by now, or who makes room for it may be decided.
func (p *prospect) dateHasCome(now time.Time) bool {
	return p.ripe || p.activating() || p.promise != nil && !p.dueAt().After(now)
}

// neglected reports whether nobody has come to work out anew when the gang starts, for so long that its own cycle is to
// do it: whoever is woken again and again is not looked at in between. Of those who have no date there may be many.
func (g *gang) neglected(now time.Time) bool {
	return !g.looked.IsZero() && now.Sub(g.looked) > neglect && g.filed.dateless == nil
}

// neglect is how old a forecast may grow on which a refused gang relies.
const neglect = 10 * time.Second

// dateCame returns the date of a gang's Reservation, which stands still once it has come.
func (p *prospect) dateCame() time.Time { return p.reservation.Spec.EarliestStart.Time }

// growth is what has been decided about making a gang that runs wider (R23).
type growth struct {
	// to is the width in GPUs that the gang is to grow to, until its status says so; 0 when it is not to.
	to int32
	// lacks is why it does not grow as it was last looked at, and known says that it was.
	lacks rqv1.WidthLacks
	known bool
	// looked is the state of the world in which the gang was last found not to fit at its next width, and rest when it is
	// worth another look.
	looked int64
	rest   time.Time
	// failed says that a cohort was given up since the gang was last looked at, and fails is how many were in a row.
	failed bool
	fails  int
	// granted is the width in GPUs that the gang was last seen to have, and shrunk says that it has become narrower since
	// it was last looked at.
	granted int32
	shrunk  bool
}

// restraint is until when a gang's activation is held back, and a sentence that says why.
type restraint struct {
	until time.Time
	why   string
	// limited says that it is for cutsPerHour.
	limited bool
}

// rebuff is an activation that other scheduling rules have made vain. Nobody is cut for its gang again until the fleet
// has changed so that it could end otherwise, or until it has rested: what kept the gang off may be other people's
// pods, which are not in the book.
type rebuff struct {
	reservation types.UID
	// refused are the nodes that turned the gang down, as they were; a process that was not there takes all in the domains
	// of the Reservation's slice for them.
	refused map[string]*corev1.Node
	// served is what there was for the gang then, by node, and seen the state of the nodes that was last compared with it.
	served map[string]serving
	seen   int64
	// over says that something has changed since.
	moot bool
}

// serving is a node that serves a gang, and how many GPUs it has for it.
type serving struct {
	node types.UID
	gpus int
}

// Activation is what has been decided for a Run whose turn has come, for its Reservation to publish (R21).
type Activation struct {
	At time.Time
	// Promise is what it is decided on, which the Reservation is to say first; nil when it does already.
	Promise   *forecast.Promise
	Conflicts []rqv1.Conflict
	Odds      string
	Nonce     [32]byte `json:"-"` // nobody may know it before it is revealed
	Draws     []rqv1.Draw
	Cuts      []rqv1.Cut
	// Failed says that the Run does not start after all: what was published is revealed, and nobody is cut. Cause and Why
	// say what has come between.
	Failed bool
	Cause  rqv1.CancelCause
	Why    string
}

// returns reports whether the activation cuts nobody: it takes back what is on loan.
func (a *Activation) returns() bool { return resolver.Returns(a.Conflicts, a.Cuts) }

// Stuck is a pod that was to make room for others and is still there long after its grace period (R37).
type Stuck struct {
	Pod  types.NamespacedName
	Node string
	// Until is when it was to be gone at the latest.
	Until time.Time
	uid   types.UID
}

// String says what is stuck, in a part of a sentence.
func (s Stuck) String() string {
	return fmt.Sprintf("pod %s on node %s, which should have ended by %s and is still there", s.Pod, s.Node,
		s.Until.UTC().Format(time.RFC3339))
}

// off returns a test for the nodes that are excluded anyway and those on which something is stuck.
func off(stuck []Stuck, excluded func(node string) bool) func(node string) bool {
	nodes := map[string]bool{}
	for _, s := range stuck {
		nodes[s.Node] = true
	}
	return func(node string) bool { return nodes[node] || excluded != nil && excluded(node) }
}
