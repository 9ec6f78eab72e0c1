package book

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// Pods is how many of the gang's have room on it beside what others hold.
	Pods int
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
// Reservation's nodes are left to it where there are others (R18), and on a suspect node nobody starts who can be
// elsewhere (R34).
const (
	isUnplanned Avoidance = 1 << iota
	hasShards
	isIntended
	isSuspect
)

// spotsOf returns the nodes over which a start may spread its pods, by name; nil where none of them is to be spread, or
// some are spares, which lie by their groups.
func (b *Book) spotsOf(g *gang, c *Check, now time.Time) map[string]Spot {
	spreads := slices.ContainsFunc(c.Places, func(p Place) bool { return len(SpreadKeys(p.Pod)) > 0 })
	if !spreads || c.Cuts || g.started() || g.spares.assigned > 0 {
		return nil
	}
	own := map[string]int{}
	for _, p := range c.Places {
		own[p.Node]++
	}
	avoid, barred := b.avoid(g, now), b.nodes.rejectedAll(g, c.Places[0].Pod)
	spots := map[string]Spot{}
	for _, name := range c.Serving {
		most := own[name] + b.fleet.Free(name)/g.full.GPUsPerPod
		if bound, bounded := g.upTo[name]; bounded {
			most = min(most, bound)
		}
		if most == 0 || g.excluded[name] != "" || barred != nil && barred(name) {
			continue
		}
		spot := Spot{Pods: most, Labels: b.nodes.byName[name].Labels, Avoid: avoid(name)}
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

// Arrange gives the pods of a check nodes anew where the rules that they are spread by want others than were planned.
// Put tells what the rules say of a pod beside those that they have accepted. It returns nil where they accept none for
// some pod, and where the manner comes to the same as Evenly.
func (c *Check) Arrange(manner Manner, put func(Place) Verdict) []string {
	if !c.differs(manner) {
		return nil
	}
	a := arrangement{evenly: manner != Sparing, most: len(c.Places) * mostTried, nodes: map[string]*seatable{},
		divisions: map[string]*division{}}
	for name, spot := range c.Spots {
		a.nodes[name] = &seatable{Spot: spot, name: name}
	}
	nodes, tried := make([]string, len(c.Places)), 0
	for _, last := range []bool{false, true} {
		for i, p := range c.Places {
			if last != (manner == SpreadFirst && len(SpreadKeys(p.Pod)) == 0) {
				continue
			}
			tried++
			node := a.nodeFor(p, tried, put)
			if node == nil {
				return nil
			}
			node.pods++
			for _, d := range a.divisions {
				d.of[node].pods++
			}
			nodes[i] = node.name
		}
	}
	return nodes
}

// differs reports whether pods may be arranged otherwise in some manner than evenly.
func (c *Check) differs(manner Manner) bool {
	switch manner {
	case Sparing:
		for _, spot := range c.Spots {
			if spot.Avoid&^isUnplanned != 0 {
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
	evenly    bool
	asked     int // how often about a pod on a node, of mostTried for each pod where it need not be evenly
	most      int
	nodes     map[string]*seatable
	divisions map[string]*division
}

// seatable is a spot and how many pods have been put there.
type seatable struct {
	Spot
	name string
	pods int
}

// division is the nodes by their values of the labels over which some pods are spread.
type division struct {
	of   map[*seatable]*part
	rows map[string][]*row // by the domain to which pods may be bound
}

// part is the nodes with one value, or one of each label.
type part struct {
	pods int
	rows map[string]*row
}

// row is the nodes of a part in one domain that have room for one more pod, the first of them at least, in the order in
// which they are filled.
type row struct {
	*part
	name  string
	nodes []*seatable
	tried int // the last pod, counted from 1, that has been tried here
}

// divide returns the nodes as a pod is spread over them.
func (a *arrangement) divide(pod *corev1.Pod) *division {
	keys := SpreadKeys(pod)
	by := strings.Join(keys, ",")
	if d := a.divisions[by]; d != nil {
		return d
	}
	d, parts := &division{of: map[*seatable]*part{}, rows: map[string][]*row{}}, map[string]*part{}
	for _, node := range a.nodes {
		values := make([]string, 0, len(keys))
		for _, key := range keys {
			values = append(values, node.Labels[key])
		}
		name := strings.Join(values, ",")
		p := parts[name]
		if p == nil {
			p = &part{rows: map[string]*row{}}
			parts[name] = p
		}
		r := p.rows[node.Domain]
		if r == nil {
			r = &row{part: p, name: name}
			p.rows[node.Domain], d.rows[node.Domain] = r, append(d.rows[node.Domain], r)
		}
		r.nodes, d.of[node], p.pods = append(r.nodes, node), p, p.pods+node.pods
	}
	for _, rows := range d.rows {
		slices.SortFunc(rows, func(x, y *row) int { return strings.Compare(x.name, y.name) })
		for _, r := range rows {
			slices.SortFunc(r.nodes, func(x, y *seatable) int {
				return cmp.Or(cmp.Compare(x.Avoid, y.Avoid), cmp.Compare(x.Pods, y.Pods), strings.Compare(x.name, y.name))
			})
		}
	}
	a.divisions[by] = d
	return d
}

// nodeFor returns the node on which a pod is put, which is the nth; nil where there is none.
func (a *arrangement) nodeFor(p Place, nth int, put func(Place) Verdict) *seatable {
	d, domain := a.divide(p.Pod), ""
	if planned := a.nodes[p.Node]; planned != nil {
		domain = planned.Domain
	}
	for {
		r := d.next(domain, nth, a.evenly)
		if r == nil {
			return nil
		}
		r.tried = nth
	nodes:
		for _, node := range r.nodes {
			if node.pods >= node.Pods {
				continue
			}
			a.asked++
			if !a.evenly && a.asked > a.most {
				return nil
			}
			switch put(Place{Pod: p.Pod, Node: node.name}) {
			case Accepted:
				return node
			case Unknown:
				return nil
			case Skewed:
				break nodes // of all nodes of the part alike
			}
		}
	}
}

// next returns the row, in a domain, that a pod is to try of those with room that it has not: the one whose first node
// is the least to be avoided, and of several the one whose part has the fewest pods, or the other way round.
func (d *division) next(domain string, nth int, evenly bool) (best *row) {
	for _, r := range d.rows[domain] {
		for len(r.nodes) > 0 && r.nodes[0].pods >= r.nodes[0].Pods {
			r.nodes = r.nodes[1:]
		}
		if r.tried == nth || len(r.nodes) == 0 {
			continue
		}
		if best == nil {
			best = r
			continue
		}
		fewer, better := cmp.Compare(r.pods, best.pods), cmp.Compare(r.nodes[0].Avoid, best.nodes[0].Avoid)
		if !evenly {
			fewer = cmp.Or(cmp.Compare(r.nodes[0].Avoid&^isUnplanned, best.nodes[0].Avoid&^isUnplanned), fewer)
		}
		if cmp.Or(fewer, better) < 0 {
			best = r
		}
	}
	return best
}
