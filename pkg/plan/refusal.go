package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Reason says in one word why a Run does not start. It is the reason of the Run's Started condition.
type Reason string

// Reasons of a refusal.
const (
	// Unsupported: the Run asks for something that this version does not serve.
	Unsupported Reason = "Unsupported"
	// Indivisible: no pod size divides every width and fits a node (R14).
	Indivisible Reason = "Indivisible"
	// UnknownGPUType: no node carries GPUs of the type.
	UnknownGPUType Reason = "UnknownGPUType"
	// WrongResource: the Run's pods ask for another resource than the GPUs of the type are.
	WrongResource Reason = "WrongResource"
	// NeverFits: the fleet is too small for it even when empty.
	NeverFits Reason = "NeverFits"
	// InsufficientGPUs: it fits an empty fleet, but not what is free now.
	InsufficientGPUs Reason = "InsufficientGPUs"
	// NoBudget: the owner has no envelope that could ever pay.
	NoBudget Reason = "NoBudget"
	// WindowClosed: the owner's envelopes do not pay at this time.
	WindowClosed Reason = "WindowClosed"
	// InsufficientBudget: those who may pay allow fewer GPUs than it needs.
	InsufficientBudget Reason = "InsufficientBudget"
	// NoRoomWhereFunded: there is room, and money, but no room where the money pays.
	NoRoomWhereFunded Reason = "NoRoomWhereFunded"
	// InsufficientGPUHours: those who may pay have too few GPU-hours left (R7).
	InsufficientGPUHours Reason = "InsufficientGPUHours"
	// BorrowLimit: sponsors would pay, but the Run's own maxBorrowGPUs is too low (R5).
	BorrowLimit Reason = "BorrowLimit"
	// NodesRejected: there is room, on nodes that other scheduling rules turn down, such as CPU or volumes.
	NodesRejected Reason = "NodesRejected"
	// NotYet: what stands in its way passes by itself.
	NotYet Reason = "NotYet"
	// NotCreated: the API server does not take the Run's pods, for want of quota or against an admission rule.
	NotCreated Reason = "NotCreated"
	// HeldInVain: places were held for pods that others did not make, and are not held again yet (R46).
	HeldInVain Reason = "HeldInVain"
)

// Refusal is why a Run does not start, as data (R29): which limit, whose, where, and by how much it is short.
type Refusal struct {
	Reason Reason
	Owner  rqv1.Owner
	Flavor string
	// WantedGPUs is what the Run needs and ShortGPUs how much of it is missing.
	WantedGPUs, ShortGPUs int
	// Elsewhere says that there is money, and room, but no room where the money pays, or too little money where there is
	// room: either could end the refusal.
	Elsewhere bool
	// Reserved says that those who may pay could pay, but for what they owe to Runs that come first.
	Reserved bool
	// Spare says that only spares of a Run that has started are refused: it runs on without them.
	Spare bool
	// Grow says that only the cohort is refused that a Run which has started was to grow by: it runs on without it.
	Grow bool
	// Belated says that only ranks are refused for which nothing was kept any more when others made their pods: the Run
	// runs on without them.
	Belated bool
	// Envelope is the payer that is short and Limit what bounds it; Domain is the fast-fabric domain that comes nearest.
	// Empty when not the cause.
	Envelope budget.Key
	Limit    budget.Limit
	Domain   string
	// Payers are the Budgets that were asked, sorted: a change of any of them could end the refusal.
	Payers []string
	// Dry are those of them that have too few GPU-hours left for all that it needs, whatever else is short.
	Dry []string
	// Opens is when a closed window opens; zero when none is going to.
	Opens time.Time
	// Rejected are the nodes that other scheduling rules turned down; nil when none was. The reason is what is short
	// beside them, and NodesRejected only where nothing is.
	Rejected *Rejection
	// MaxDuration is the longest with which a Run that declares none would start at once (R19); 0 where none would help.
	MaxDuration time.Duration
	// Excluded is a node with room that the pods may not use, the first by name; empty where there is none.
	Excluded string
	// Since is when the last pod was made of ranks that are refused of a Run that has started.
	Since time.Time
	// Awaits says that ranks which have lost their places wait for where they were: the Run runs on meanwhile.
	Awaits bool
	// Advice is who was asked to pay, and what would help; nil until it is asked for.
	Advice *Advice
	// Message is the sentence for people.
	Message string
}

// Rejection is what other scheduling rules turned down: so many nodes, one of them, and the rule there. No node is
// named where the pod was turned down as a whole.
type Rejection struct {
	Nodes int
	Node  string
	Rule  string
	// Known says that they follow from what a plan looks at, so that nothing need be tried again until that changes.
	Known bool
	// Vain says that they would keep it from them although others were cut for it, so that nobody is.
	Vain bool
	// Rest is how long it is at least until they are worth another try; 0 where that is not known.
	Rest time.Duration
}

// Add notes one more node, and its rule if the node is the first by name.
func (r *Rejection) Add(node, rule string) {
	r.Nodes++
	if r.Node == "" || node < r.Node {
		r.Node, r.Rule = node, rule
	}
}

// Without says of a refusal which nodes could not be used.
func (r *Refusal) Without(rejected *Rejection) {
	r.Rejected = rejected
	if rejected == nil {
		return
	}
	what := "1 node was"
	switch {
	case rejected.Vain && rejected.Nodes == 1:
		what = "no Run is cut for it, because 1 node would still be"
	case rejected.Vain:
		what = fmt.Sprintf("no Run is cut for it, because %d nodes would still be", rejected.Nodes)
	case rejected.Nodes != 1:
		what = fmt.Sprintf("%d nodes were", rejected.Nodes)
	}
	r.Message = fmt.Sprintf("%s; %s rejected by other scheduling rules, such as %s: %s", r.Message, what, rejected.Node,
		rejected.Rule)
}

// Because says of a refusal why the node that it names as excluded is.
func (r *Refusal) Because(why string) {
	r.Message = fmt.Sprintf("%s, such as %s: %s", r.Message, r.Excluded, why)
}

// OtherDomains says that who asks for domains of some labels to itself gets those of another, within which a group of
// GPUs stays; it is empty where that is not so.
func OtherDomains(who string, keys []string, level string) string {
	switch {
	case !slices.ContainsFunc(keys, func(key string) bool { return key != level }):
		return ""
	case len(keys) > 1:
		return fmt.Sprintf("%s asks for exclusive domains of several labels (%s), and jobtree keeps a group of GPUs "+
			"within one of %s: name that one for all of them", who, strings.Join(keys, ", "), level)
	}
	return fmt.Sprintf("%s asks for exclusive domains of %s, and jobtree keeps a group of GPUs within one of %s: set "+
		"fabricLevel to %s if its domains are others", who, keys[0], level, keys[0])
}

// SameAs reports whether a refusal says the same as another. What has been spent of GPU-hours changes by the second,
// and alone is no news.
func (r *Refusal) SameAs(o *Refusal) bool {
	x, y := *r, *o
	x.Advice, y.Advice = nil, nil
	x.Dry, y.Dry = nil, nil // which nobody is told
	if x.Rejected != nil && y.Rejected != nil {
		p, q := *x.Rejected, *y.Rejected
		p.Rest, q.Rest = 0, 0
		x.Rejected, y.Rejected = &p, &q
	}
	if x.Limit.Hours() && y.Limit.Hours() {
		x.Message, y.Message = "", ""
		x.Limit.Left, y.Limit.Left = 0, 0
		x.Limit.Owed.Amount, y.Limit.Owed.Amount = 0, 0
	}
	return reflect.DeepEqual(x, y)
}

// Passes reports whether a refusal may end without anything changing that a plan looks at: it is worth another try.
func (r *Refusal) Passes() bool {
	return r.Reason == NotYet || r.Rejected != nil && !r.Rejected.Known
}

// AwaitsOthers reports whether the Run could start as far as money goes, once others have made room or what stands in
// its way has passed.
func (r *Refusal) AwaitsOthers() bool {
	return r.AboutRoom() && !r.NeedsNodes() || r.Reason == NoRoomWhereFunded || r.Reason == NotYet
}

// NeedsNodes reports whether nothing but other nodes could end the refusal, whoever leaves.
func (r *Refusal) NeedsNodes() bool {
	switch r.Reason {
	case UnknownGPUType, WrongResource, NeverFits, Indivisible:
		return true
	}
	return false
}

// Error returns the sentence for people.
func (r *Refusal) Error() string { return r.Message }

// AboutPods reports whether the Run's pods are not made, by the API server's or by others' doing.
func (r *Refusal) AboutPods() bool { return r.Reason == NotCreated || r.Reason == HeldInVain }

// AboutRoom reports whether GPUs becoming free, or nodes changing, could end the refusal.
func (r *Refusal) AboutRoom() bool {
	switch r.Reason {
	case UnknownGPUType, WrongResource, NeverFits, InsufficientGPUs, NodesRejected, Indivisible:
		return true
	}
	return false
}

// AboutMoney reports whether somebody being able to pay for more could end the refusal.
func (r *Refusal) AboutMoney() bool {
	switch r.Reason {
	case NoBudget, WindowClosed, InsufficientBudget, InsufficientGPUHours, BorrowLimit, NoRoomWhereFunded:
		return true
	}
	return false
}

// LacksMoney reports whether those who may pay allow too little: only then is there a limit to raise.
func (r *Refusal) LacksMoney() bool { return r.AboutMoney() && r.Reason != NoRoomWhereFunded }

// UnknownType says that no node has GPUs of a Run's type.
func UnknownType(d Demand) *Refusal {
	return &Refusal{Reason: UnknownGPUType, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: d.HeldGPUs(),
		ShortGPUs: d.HeldGPUs(),
		Message: fmt.Sprintf("no node has GPUs of type %s; correct spec.resources.gpuType or wait for such nodes",
			d.Flavor)}
}

// OtherResource says that a Run's pods ask for another resource than the GPUs of its type are.
func OtherResource(d Demand, message string) *Refusal {
	return &Refusal{Reason: WrongResource, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: d.HeldGPUs(),
		ShortGPUs: d.HeldGPUs(), Message: message}
}

// TooWide says that a Run wants more GPUs than there are on all nodes of its type, fleet, in pieces that its pods can
// use: gpus.
func TooWide(d Demand, gpus int, fleet *topology.Blocks) *Refusal {
	r := ofRoom(d, &topology.Shortfall{Kind: topology.FleetTooSmall, Flavor: d.Flavor, WantedGPUs: d.HeldGPUs(),
		PlaceableGPUs: gpus, ShortGPUs: d.HeldGPUs() - gpus})
	if d.SparesPerGroup > 0 && d.ranksAlone().fits(fleet) {
		r.Message += ranksWouldFit
	}
	return r
}

// PodTooLarge says that a pod of a Run wants more GPUs than the largest node of its type has, which has so many.
func PodTooLarge(d Demand, largest int) *Refusal {
	return ofRoom(d, &topology.Shortfall{Kind: topology.PodTooLarge, Flavor: d.Flavor, WantedGPUs: d.HeldGPUs(),
		UnitGPUs: d.GPUsPerPod, LargestGPUs: largest, ShortGPUs: d.GPUsPerPod - largest})
}

// ofRoom turns pack's shortfall into a refusal.
func ofRoom(d Demand, s *topology.Shortfall) *Refusal {
	r := &Refusal{
		Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: s.WantedGPUs, ShortGPUs: s.ShortGPUs, Domain: s.Domain,
		Message: s.String(), Excluded: s.ExcludedNode,
	}
	switch s.Kind {
	case topology.UnknownFlavor:
		r.Reason = UnknownGPUType
	case topology.PodTooLarge, topology.GroupTooLarge, topology.FleetTooSmall:
		r.Reason = NeverFits
	default:
		r.Reason = InsufficientGPUs
	}
	return r
}
