package book

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// observer says what is known of the nodes and shards of a Run.
type observer struct {
	nodes  *nodeTable
	places *placement
}

// lookAtNode notes how a node is, for a gang if there is one, whose ranks are of some kinds.
func (o *observer) lookAtNode(l *Look, g *gang, kinds map[*variant][]int, name string) {
	if _, known := l.Nodes[name]; known || o.nodes.byName[name] == nil {
		return
	}
	state := NodeState{Stands: o.nodes.stands(name), HeldBack: o.nodes.heldBack[name], Outage: o.nodes.fleet.Outage(name)}
	state.Accepts, state.Refuses = o.places.seats.acceptsOf(g, name, kinds)
	if sign, out := outage.SignOf(o.nodes.byName[name]); out {
		state.Sign = sign.Condition
	}
	l.Nodes[name] = state
}

// lookAtShard notes whether a shard has been told to give its GPUs back.
func (o *observer) lookAtShard(l *Look, pod types.UID) {
	if reason, told := o.places.reclaimed[pod]; told {
		l.Told[pod] = reason
	}
}

// lookAtMember notes whether a pod is of before its Run was last sent back to wait.
func (o *observer) lookAtMember(l *Look, pod types.UID) {
	if m := o.places.roster.members[pod]; m != nil && m.gang.former(m.had) {
		l.Former[pod] = true
	}
}

// lookAtCompleted notes the ranks that have completed and have no pod any more, where others make the pods.
func (o *observer) lookAtCompleted(l *Look, g *gang) {
	if !g.run.Spec.Theirs() {
		return
	}
	for part := range g.latest {
		if !part.Spare && g.completed(part.Index) {
			l.Completed[part.Index] = true
		}
	}
}

// lookAtSeat notes whether a rank that records a spare can have its place. One that the book has not seen yet is as one
// about which other rules are being asked.
func (o *observer) lookAtSeat(l *Look, g *gang, pod *corev1.Pod) {
	r, ok := rank.ReplacementOf(pod)
	if !ok || r.SpareUID == "" || pod.Spec.NodeName != "" {
		return
	}
	m := o.places.roster.members[pod.UID]
	if m == nil {
		l.Unseated[r.SpareUID] = false
		return
	}
	at := slices.IndexFunc(g.vacant, func(v vacancy) bool { return v.seat() && v.pod == r.SpareUID })
	switch {
	case m.stage != unplaced && m.node == r.Node:
	case m.stage != unplaced, at < 0:
		l.Unseated[r.SpareUID] = true
	case g.vacant[at].asks:
		l.Unseated[r.SpareUID] = false
	}
}

// Objects are what a cache of the API server holds of a Run.
type Objects struct {
	Name types.NamespacedName
	// Run is nil once it is gone.
	Run *rqv1.Run
	// Pods and Reservations carry the Run's label and Leases are open and name the Run, whatever its UID; in any order.
	Pods         []*corev1.Pod
	Leases       []*rqv1.Lease
	Reservations []*rqv1.Reservation
	// Guards are the PodDisruptionBudgets of the Run's namespace that are the Run's or select pods of it.
	Guards []*policyv1.PodDisruptionBudget
	// Offers are pods that somebody else has made for the Run and that have no rank in it, in any order; GroupEnd is how
	// the group of a Run of pods has ended; both are empty for a Run that makes its own.
	Offers   []Offer
	GroupEnd rqv1.RunPhase
}

// Offer is a pod with the rank that it is for, and -1 for any.
type Offer struct {
	Pod  *corev1.Pod
	Rank int
}

// Look is what the book knows of a Run at one instant: data alone, so that a decision on it can be made again.
type Look struct {
	// State is how far the Run's gang has come, in a word, for people.
	State string
	// Demand is the Run's shape, and Shape why it has none.
	Demand plan.Demand
	Shape  *plan.Refusal
	// GPUResource is what the Run's pods request as GPUs.
	GPUResource string
	// AtRest says that the Run has ended and nothing of that end is still to come.
	AtRest bool
	// Unpaid says that nobody can pay for the Run, so that it gets no pods, and HadLease that a pod of it has had a Lease,
	// also one that is closed, or may have had.
	Unpaid, HadLease bool
	// Alone says that the Run waits and its pods have no places: of its pods the leader is to be there alone (R32).
	Alone bool
	// Yields says that the Run has no pods beside those that have places: the API server has just turned them back, or
	// another Run has its turn at the quota of the namespace, or they are of a size that the nodes have outgrown.
	Yields bool
	// Drain is what is asked of a Run that runs by those who empty nodes.
	Drain Drain
	// NotTaken is since when the API server has not taken a rank that a running Run lacks; zero when it lacks none.
	NotTaken time.Time
	// Musters says that places are kept for pods that have not been made, and Disbands that pods beside the leader's go,
	// since they have no places.
	Musters, Disbands bool
	Prospect
	// Priority is what the Run has among those of its owner.
	Priority Priority
	// PlaceSince is since when the Run has its place among those that wait; nil for its creation.
	PlaceSince *time.Time
	// Cuts are what Reservations that are activating do to the Run, and what it gives lost ranks of its owner's, in the
	// order in which that was decided.
	Cuts []rank.Cut
	// Risks are the Reservations whose activation may cut the Run.
	Risks []rqv1.RunRisk
	// Nodes are those on which the Run's pods and Leases are, by name; one that does not exist is not among them.
	Nodes map[string]NodeState
	// Broken are the pods of which their kubelets say that a device is broken, unless too many nodes have such pods at
	// once, as DevicesHeld says.
	Broken      map[types.UID]bool
	DevicesHeld bool
	// Leased are the pods whose Leases are known to be open, even if they are not among the Objects yet.
	Leased map[types.UID]bool
	// Opening are the pods whose Leases are being written: they may be open by now.
	Opening map[types.UID]bool
	// Former are the pods whose Leases, open or closed, are of before the Run was last sent back to wait.
	Former map[types.UID]bool
	// Completed are the ranks of a Run whose pods others make that have no pod and had completed when they had one last.
	Completed map[int]bool
	// Forgone are the ranks of such a Run for which nobody has made pods for as long as places are kept, with the pods
	// that they had last.
	Forgone map[int]types.UID
	// KeptInVain is since when places were kept last for pods that did not come in time, or went at once; zero for never.
	KeptInVain time.Time
	// Inherits is what groups that are gone have left a Run to begin with, which is to start and whose pods are made late
	// (R46); nil for nothing.
	Inherits *rqv1.RunHeldInVain
	// Left are the pods with open Leases that have been told to go, or have ended or are gone before, as they were then.
	// A Run's status has room for the ends of a few, and those that go at once are in no cache long enough.
	Left map[types.UID]*corev1.Pod
	// Here are the pods with open Leases that no cache holds and of whose end the book has not heard, and Vanished those
	// that are gone while their containers may run.
	Here     map[types.UID]bool
	Vanished map[types.UID]Vanished
	// Told are the shards of an opportunistic Run that have been told to give their GPUs back, and why.
	Told map[types.UID]rqv1.ClosureReason
	// Owed is how many GPUs of a Lease are beyond what its payer allows, by the Lease's name.
	Owed map[string]int
	// Commitments are what Reservations commit to (R21), by UID; empty while the key of lotteries is not known. Awaited
	// are those whose Runs run while the Runs that were cut for them still hold something.
	Commitments map[types.UID]string
	Awaited     map[types.UID]bool
	// Moves are the pods that leave since their group goes on in another domain as a whole (R42).
	Moves map[types.UID]bool
	// Unseated are the spares whose places the ranks that record them do not have: true if they cannot have them, false
	// while other scheduling rules are being asked.
	Unseated map[types.UID]bool
}

// NodeState is how a node is.
type NodeState struct {
	// Stands says that the node is not lost, and Accepts that pods of the Run could be bound to it, but for the ranks in
	// Refuses, where its pods differ.
	Stands, Accepts bool
	Refuses         map[int]bool
	// HeldBack says that the node shows a sign of loss and is not taken for lost, since too many nodes do at once (R25).
	HeldBack bool
	// Outage is when it is out of service by plan, and Sign the condition by which it tells of that without a date.
	Outage outage.Window
	Sign   string
}

// Stands reports whether a node exists and is not lost.
func (l *Look) Stands(node string) bool { return l.Nodes[node].Stands }

// Accepts reports whether pods of the Run could be bound to a node.
func (l *Look) Accepts(node string) bool { return l.Nodes[node].Accepts }

// AcceptsRank reports whether the pod of a rank could be: one that has none is taken to be as the others.
func (l *Look) AcceptsRank(node string, index int) bool {
	is := l.Nodes[node]
	return is.Accepts && !is.Refuses[index]
}

// Overdraft returns how many GPUs of a Lease are beyond what its payer allows.
func (l *Look) Overdraft(lease *rqv1.Lease) int { return l.Owed[keyOf(lease).String()] }

// Reclaimed returns why a shard of an opportunistic Run has been told to give its GPUs back; false when it has not.
func (l *Look) Reclaimed(pod types.UID) (rqv1.ClosureReason, bool) {
	reason, told := l.Told[pod]
	return reason, told
}
