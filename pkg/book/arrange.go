package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Verdict is what other rules say of a pod on a node.
type Verdict int

// Refused is for what the node is, or has on it, and Skewed for how many pods are on nodes that are like it by what the
// pod is to be spread over. Unknown ends an arrangement.
const (
	Accepted Verdict = iota
	Refused
	Skewed
	Unknown
)

// Spot is a node on which pods of a gang may be.
type Spot struct {
	// Pods is how many of the gang's have room on it beside what others hold, and Cleared how many more would have once
	// those are gone who may be cut for it, whose pods Tenants are.
	Pods, Cleared int
	Tenants       []types.UID
	// Domain is its fast-fabric domain where the gang's groups each lie in one (R12); empty where they do not.
	Domain string
	Labels map[string]string
	// Shards are the opportunistic pods on it, which may have to leave (R7).
	Shards []types.UID
	// Avoid says how much the gang had better be elsewhere.
	Avoid Avoidance
}

// Avoidance adds up what stands against a node that a gang may use.
type Avoidance int

// A plan knows why it has nobody on a node, such as that nobody pays there; shards had better stay where they are, a
// Reservation's nodes are left to it where there are others (R18), on a suspect node nobody starts who can be elsewhere
// (R34), and nobody is cut where there is another way (R19).
const (
	isUnplanned Avoidance = 1 << iota
	hasShards
	isIntended
	isSuspect
	isHeld
)

// spotsOf returns the nodes over which a start, ranks that come later or a decision to cut may spread its pods, by
// name; nil where none of them is to be spread.
func (b *Book) spotsOf(g *gang, c *Check, now time.Time) map[string]Spot {
	spreads := slices.ContainsFunc(c.Places, func(p Place) bool { return len(SpreadKeys(p.Pod)) > 0 })
	if !spreads {
		return nil
	}
	own := map[string]int{}
	for _, p := range c.Places {
		own[p.Node]++
	}
	avoid, barred := b.avoid(g, now), b.nodes.rejectedAll(g, c.Places[0].Pod)
	left := b.leftBy(g, c)
	upTo, without, room := g.upTo, barred, b.roomIn(g, c, own, now)
	if c.Cuts {
		upTo, without = g.mostSaid(), g.check.without(barred)
	}
	without = b.nodes.shutOut(g, without, now)
	b.scope(g, c)
	spots := map[string]Spot{}
	for _, name := range c.Serving {
		if b.fleet.DomainOf(name) == "" {
			continue // it is left out, and no plan has anybody there
		}
		spot := room(name)
		if bound, bounded := upTo[name]; bounded && !g.check.skewed[name] {
			spot.Pods = min(spot.Pods, bound)
			spot.Cleared = min(spot.Cleared, bound-spot.Pods)
		}
		if left[name] && own[name] == 0 || spot.Pods+spot.Cleared == 0 || g.excluded[name] != "" ||
			without != nil && without(name) {
			continue
		}
		spot.Labels, spot.Avoid = b.nodes.byName[name].Labels, avoid(name)
		if g.grows() && spot.Avoid&isIntended != 0 {
			continue // what grows stays out of Reservations' way (R23)
		}
		if own[name] == 0 {
			spot.Avoid |= isUnplanned
		}
		spot.Shards = slices.Collect(maps.Keys(b.seats.shards[name]))
		if g.full.Confined || g.full.OneDomain {
			spot.Domain = b.nodes.domainOf(name)
		}
		spots[name] = spot
	}
	return spots
}

// roomIn returns how many pods of a gang, which has so many there, have room on a node once those are gone who leave
// anyway or, in a decision to cut, may have to.
func (b *Book) roomIn(g *gang, c *Check, own map[string]int, now time.Time) func(node string) Spot {
	size, leaves := g.full.GPUsPerPod, map[string]int{}
	may, tenants := map[string]int{}, map[string][]types.UID{}
	if !g.started() {
		may, tenants = b.turns.candidates.mayGo(g, now)
	}
	for node, leaving := range c.Leaving {
		for _, pod := range leaving {
			if h := b.seats.held[pod]; h != nil && !h.shard {
				leaves[node] += h.gpus
			}
		}
	}
	return func(node string) Spot {
		free := b.nodes.gpusOf(b.nodes.byName[node]) - b.fleet.Held(node) + own[node]*size
		then := max(0, free+leaves[node]+may[node]) / size
		if !c.Cuts {
			free += leaves[node]
		}
		free = max(0, free) / size
		return Spot{Pods: free, Cleared: then - free, Tenants: tenants[node]}
	}
}

// avoid returns what stands against nodes that a gang may use.
func (b *Book) avoid(g *gang, now time.Time) func(node string) Avoidance {
	intended, suspect := b.agenda.outOfTheWay(g, nil, now), b.nodes.unsuspected(nil, now)
	return func(node string) (a Avoidance) {
		if len(b.seats.shards[node]) > 0 {
			a |= hasShards
		}
		if intended != nil && intended(node) {
			a |= isIntended
		}
		if suspect != nil && suspect(node) {
			a |= isSuspect
		}
		return a
	}
}

// Manner is how pods are arranged.
type Manner int

// Sparing has each pod go where as little as may be stands against it, as far as the rules let it, and of such nodes
// where the fewest of the pods are; Evenly has it go where the fewest are first of all. SpreadFirst has those pods come
// last, besides, that are not to be spread: they would take the room of the others, and nobody waits for them.
const (
	Sparing Manner = iota
	Evenly
	SpreadFirst
)

// Manners are all of them, in the order in which they are tried.
var Manners = []Manner{Sparing, Evenly, SpreadFirst}

// Arrange gives the pods of a check nodes anew where the rules that they are spread by want others than were planned:
// beside those who may be cut for them, or where these are once they are cleared. Put tells what the rules say of a pod
// beside those that they have accepted. It returns nil where they accept none for some pod, and where the manner comes
// to the same as Evenly; where it cannot be found out the check is unlaid.
func (c *Check) Arrange(manner Manner, cleared bool, put func(Place) Verdict) []string {
	if !c.differs(manner, cleared) {
		return nil
	}
	a := arrangement{check: c, evenly: manner != Sparing, most: len(c.Places) * mostTried, spots: c.Spots,
		ranks: map[string]int{}, divisions: map[string]*division{}}
	for name, spot := range c.Spots {
		a.nodes = append(a.nodes, &seatable{Spot: spot, name: name})
		if cleared && spot.Cleared > 0 {
			then := spot
			then.Pods, then.Avoid = spot.Cleared, spot.Avoid|isHeld
			a.nodes = append(a.nodes, &seatable{Spot: then, name: name})
		}
	}
	a.domains = a.scoped()
	nodes, tried := make([]string, len(c.Places)), 0
	for i, p := range c.Places {
		if !c.sits(i) {
			continue
		}
		if put(p) != Accepted {
			return nil
		}
		nodes[i] = p.Node
		a.seat(p.Node)
	}
	for _, last := range []bool{false, true} {
		for i, p := range c.Places {
			if c.sits(i) || last != (manner == SpreadFirst && len(SpreadKeys(p.Pod)) == 0) {
				continue
			}
			tried++
			node := a.nodeFor(p, tried, a.domains.within(i, a.spots[p.Node].Domain), put)
			if node == nil {
				return nil
			}
			a.domains.take(i, node.Domain)
			node.pods++
			if !isSpare(p.Pod) {
				a.ranks[node.name]++
			}
			for _, d := range a.divisions {
				d.of[node].pods++
			}
			nodes[i] = node.name
		}
	}
	return nodes
}

// ArrangeAnew finds out where the pods of a check would be spread that nodes have turned down for where the others are,
// if they are to be: those of a start with others cut for it where it cannot be without.
func (c *Check) ArrangeAnew(turned []Turning, arrange func(cleared bool) []string) {
	if c.Spots == nil || !slices.ContainsFunc(turned, func(t Turning) bool { return t.Skewed }) {
		return
	}
	c.Spread = arrange(c.Cuts)
	if c.Spread == nil && !c.Cuts && c.mayClear() {
		c.Cleared = arrange(true)
	}
	c.Unlaid = c.Unlaid && c.Spread == nil
}

// mayClear reports whether others may be cut for a start where it could be spread.
func (c *Check) mayClear() bool {
	for _, spot := range c.Spots {
		if spot.Cleared > 0 {
			return true
		}
	}
	return false
}

// differs reports whether pods may be arranged otherwise in some manner than evenly.
func (c *Check) differs(manner Manner, cleared bool) bool {
	switch manner {
	case Sparing:
		for _, spot := range c.Spots {
			if spot.Avoid&^isUnplanned != 0 || cleared && spot.Cleared > 0 {
				return true
			}
		}
		return false
	case SpreadFirst:
		return slices.ContainsFunc(c.Places, func(p Place) bool { return len(SpreadKeys(p.Pod)) == 0 })
	}
	return true
}

// mostTried is how often it is asked about each of the pods before they are spared nothing: a place that costs no more
// than the rules ask is found in a few questions, or there is no time for it.
const mostTried = 4

// arrangement is where pods have been put so far.
type arrangement struct {
	check     *Check
	evenly    bool
	asked     int // how often about a pod on a node, of mostTried for each pod where it need not be evenly
	most      int
	spots     map[string]Spot
	nodes     []*seatable
	ranks     map[string]int // by node, spares apart
	divisions map[string]*division
	domains   *scoping
	kinds     []*corev1.Pod // one of each
}

// seatable is a spot, or what of it others have to leave, and how many pods have been put there.
type seatable struct {
	Spot
	name    string
	pods    int
	refused [mostKinds]bool // pods of a kind, as it will for as long as others are put
}

// nodeFor returns the node on which a pod is put, which is the nth, in some domains; nil where there is none. A spare
// has rather one without ranks (R12).
func (a *arrangement) nodeFor(p Place, nth int, in func(domain string) bool, put func(Place) Verdict) *seatable {
	if !isSpare(p.Pod) {
		return a.nodeOf(p, 2*nth, in, func(*seatable) bool { return true }, put)
	}
	apart := func(node *seatable) bool { return a.ranks[node.name] == 0 }
	if node := a.nodeOf(p, 2*nth, in, apart, put); node != nil {
		return node
	}
	return a.nodeOf(p, 2*nth+1, in, func(node *seatable) bool { return !apart(node) }, put)
}

// nodeOf returns one, of some nodes in some domains, for whom it is asked as the nth.
func (a *arrangement) nodeOf(p Place, nth int, in func(domain string) bool, of func(*seatable) bool,
	put func(Place) Verdict) *seatable {
	d, kind := a.divide(p.Pod), a.kindOf(p.Pod)
	for {
		r := d.next(in, nth, a.evenly)
		if r == nil {
			return nil
		}
		r.tried = nth
	nodes:
		for _, node := range r.nodes {
			if node.pods >= node.Pods || !of(node) || kind >= 0 && node.refused[kind] {
				continue
			}
			a.asked++
			if !a.evenly && a.asked > a.most {
				return nil
			}
			switch put(Place{Pod: p.Pod, Node: node.name}) {
			case Accepted:
				return node
			case Refused:
				if kind >= 0 {
					node.refused[kind] = true
				}
			case Unknown:
				a.check.Unlaid = true
				return nil
			case Skewed:
				break nodes // of all nodes of the part alike
			}
		}
	}
}

// isSpare reports whether a pod is a spare's.
func isSpare(pod *corev1.Pod) bool { return pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) }
