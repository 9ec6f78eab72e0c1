package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// asked is how much pods of a kind ask for beside GPUs.
type asked struct{ cpu, memory int64 }

func (a asked) amounts() *topology.Amounts {
	return topology.NewAmounts(map[string]int64{"cpu": a.cpu, "memory": a.memory})
}

// scene is pods of several kinds and where they could go, for a search that tries all ways.
type scene struct {
	fleet    *topology.Fleet
	accounts *budget.Accounts
	demand   Demand
	claim    Claim
	missing  []Missing
	nodes    []string
	asks     map[*Kind]asked
	pays     map[string]int // pods, by envelope
	// apart says in which region each pod is to be, and that no spare may be on the node of a rank of its group; nil for
	// neither.
	apart map[rank.Part]string
}

func sceneOf(t *rapid.T) *scene {
	s := &scene{fleet: fleet(), nodes: []string{"a1", "a2", "b1", "b2"}, asks: map[*Kind]asked{}, pays: map[string]int{}}
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "GPUs"),
		Groups: rapid.IntRange(1, 2).Draw(t, "groups"), PodsPerGroup: rapid.IntRange(1, 2).Draw(t, "pods"),
		SparesPerGroup: rapid.IntRange(0, 1).Draw(t, "spares")}
	switch rapid.IntRange(0, 2).Draw(t, "together") {
	case 1:
		d.Confined = true
	case 2:
		d.OneDomain = true
	}
	s.demand, s.claim = d, Claim{Run: "r", Most: map[string]int{}, Kept: Kept{}}
	amount := func(of string) int64 { return rapid.SampledFrom([]int64{0, 0, 200, 250, 300}).Draw(t, of) }
	for _, node := range s.nodes {
		s.fleet.SetNode(topology.Node{Name: node, Flavor: "H100", GPUs: 8, Beside: asked{500, 500}.amounts(),
			Labels: map[string]string{"region": regionOf(node), "fabric.domain": strings.ToUpper(node[:1])}})
		if rapid.IntRange(0, 2).Draw(t, node+" has a guest") == 0 {
			gpus := rapid.SampledFrom([]int{4, 6}).Draw(t, "its GPUs")
			s.fleet.Hold(node, gpus, asked{amount("its CPU"), amount("its memory")}.amounts())
		}
		if rapid.IntRange(0, 4).Draw(t, node+" is bounded") == 0 {
			s.claim.Most[node] = rapid.IntRange(0, 1).Draw(t, "most")
		}
	}
	s.drawMoney(t)
	var kinds []*Kind
	for i := range rapid.IntRange(2, 3).Draw(t, "kinds") {
		k := kindOn(t, s.fleet, fmt.Sprint("kind", i), s.nodes)
		s.asks[k] = asked{amount("CPU"), amount("memory")}
		k.Beside = s.asks[k].amounts()
		kinds = append(kinds, k)
	}
	s.missing = all(d)
	for i := range s.missing {
		s.missing[i].Kind = rapid.SampledFrom(kinds).Draw(t, "kind")
	}
	for i := range d.Spares() {
		first := s.missing[i/d.SparesPerGroup*d.PodsPerGroup]
		s.missing = append(s.missing, Missing{Part: rank.Part{Index: i, Spare: true}, Kind: first.Kind})
	}
	return s
}

func (s *scene) drawMoney(t *rapid.T) {
	gpus := func(name string) int32 { return rapid.SampledFrom([]int32{8, 16, 48}).Draw(t, name) }
	w, e, any := west(gpus("west")), east(gpus("east")), west(gpus("any")-8)
	any.Name, any.Selector = "any", nil
	s.accounts = accounts(w, e, any)
	for name, gpus := range map[string]int32{"west": w.Concurrency, "east": e.Concurrency, "any": any.Concurrency} {
		s.pays[name] = int(gpus) / s.demand.GPUsPerPod
	}
	if kept := rapid.IntRange(0, 3).Draw(t, "kept"); kept > 0 {
		s.claim.Kept[budget.Key{Budget: "b", Envelope: "west"}] = budget.Kept{Pods: kept, Relation: "Own"}
		s.pays["west"] = max(s.pays["west"], kept)
	}
}

// most returns how many of the pods have places at once, by trying all ways; with money also how many are paid for.
func (s *scene) most(money bool) int {
	return s.from(s.missing, nil, money)
}

// stand is a pod and the node that it goes to.
type stand struct {
	Missing
	node string
}

func (s *scene) from(left []Missing, placed []stand, money bool) int {
	if len(left) == 0 {
		return len(placed)
	}
	best := 0
	for _, node := range s.nodes {
		with := append(slices.Clone(placed), stand{left[0], node})
		if s.may(with) && (!money || s.paid(with)) {
			best = max(best, s.from(left[1:], with, money))
		}
		if best == len(left)+len(placed) {
			return best
		}
	}
	return max(best, s.from(left[1:], placed, money))
}

// may reports whether pods may be where they are.
func (s *scene) may(placed []stand) bool {
	last := placed[len(placed)-1]
	pods, beside := 0, asked{}
	for _, p := range placed {
		together := s.demand.OneDomain || s.demand.Confined && s.demand.Group(p.Part) == s.demand.Group(last.Part)
		if together && regionOf(p.node) != regionOf(last.node) {
			return false
		}
		together = s.demand.Group(p.Part) == s.demand.Group(last.Part)
		shares := together && p.node == last.node && p.Spare != last.Spare
		if s.apart != nil && (shares || s.apart[p.Part] != regionOf(p.node)) {
			return false
		}
		if p.node == last.node {
			pods++
			beside.cpu += s.asks[p.Kind].cpu
			beside.memory += s.asks[p.Kind].memory
		}
	}
	most, bounded := s.claim.Most[last.node]
	return !last.Kind.Barred(last.node) && pods*s.demand.GPUsPerPod <= s.fleet.Free(last.node) &&
		s.fleet.RoomBeside(last.node, beside.amounts(), 1) == 1 && (!bounded || pods <= most)
}

// paid reports whether somebody pays for pods where they are.
func (s *scene) paid(placed []stand) bool {
	beyond := 0
	for _, region := range []string{"west", "east"} {
		pods := 0
		for _, p := range placed {
			if regionOf(p.node) == region {
				pods++
			}
		}
		beyond += max(0, pods-s.pays[region])
	}
	return beyond <= s.pays["any"]
}

// TestKindsOfPodsAgainstAllWays: pods of several kinds have places wherever there are any, by GPUs, by what they ask
// for beside these, by what a node takes at most and by who pays; what is told to be short of them is.
func TestKindsOfPodsAgainstAllWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sceneOf(t)
		attempt := Prepare(s.accounts, s.demand, s.claim, s.missing, nil, noon)
		places, refusal := attempt.Place(s.fleet)
		paid := s.most(true)
		if fits := attempt.Fits(s.fleet); fits != (refusal == nil) || fits != (paid == len(s.missing)) {
			t.Fatalf("%d of %d pods have places, it fits: %v, and is refused for %v", paid, len(s.missing), fits, refusal)
		}
		short := attempt.Short(s.fleet)
		if refusal == nil {
			s.check(t, places)
			s.checkApart(t, places)
			if short != nil {
				t.Fatalf("it is short of %+v", short)
			}
			return
		}
		s.checkShort(t, short, paid)
		if refusal.ShortGPUs <= 0 || refusal.Message == "" {
			t.Fatalf("it is refused for %+v", refusal)
		}
	})
}

// checkShort asserts that what is short is room where room is short, and money where that is, and that no more pods are
// told to have places than have.
func (s *scene) checkShort(t *rapid.T, short *topology.Shortfall, paid int) {
	room := s.most(false)
	var want topology.Kind
	switch {
	case short == nil:
		t.Fatal("nothing is short")
	case short.Kind != topology.NoRoom && short.Kind != topology.Unpayable:
		return // it would not fit an empty fleet
	case room < len(s.missing):
		want = topology.NoRoom
	default:
		want, room = topology.Unpayable, paid
	}
	gpus := s.demand.GPUsPerPod
	if short.Kind != want || short.ShortGPUs < (len(s.missing)-room)*gpus || short.ShortGPUs > len(s.missing)*gpus ||
		short.PlaceableGPUs != len(s.missing)*gpus-short.ShortGPUs {
		t.Fatalf("it is short of %+v; %d of %d pods have places, and money lets %d in", short, room, len(s.missing), paid)
	}
}

// checkApart asserts that spares are on other nodes than the ranks of their group, if all could be with each pod in the
// region where it is (R12).
func (s *scene) checkApart(t *rapid.T, places []Assignment) {
	beside := func(on Assignment, spare Assignment) bool {
		return !on.Spare && on.Group == spare.Group && on.Node == spare.Node
	}
	for _, spare := range places {
		if spare.Spare && slices.ContainsFunc(places, func(a Assignment) bool { return beside(a, spare) }) {
			s.apart = map[rank.Part]string{}
			for _, a := range places {
				s.apart[a.Part] = regionOf(a.Node)
			}
			if s.most(true) == len(s.missing) {
				t.Fatalf("%v is on the node of a rank of its group, and need not be: %+v", spare.Part, places)
			}
		}
	}
}

// check asserts that each pod is where it may be, and paid for, and that nothing is held.
func (s *scene) check(t *rapid.T, places []Assignment) {
	var placed []stand
	payers, cost := map[budget.Key]int{}, map[string]int{}
	for _, m := range s.missing {
		at := slices.IndexFunc(places, func(a Assignment) bool { return a.Part == m.Part })
		if at < 0 {
			t.Fatalf("%v has no place", m.Part)
		}
		placed = append(placed, stand{m, places[at].Node})
		if !s.may(placed) || s.fleet.DomainOf(places[at].Node) != places[at].Domain {
			t.Fatalf("%v may not be on %s beside others: %+v", m.Part, places[at].Node, places)
		}
		payers[places[at].Payer]++
		cost[places[at].Payer.Envelope+" in "+regionOf(places[at].Node)]++
	}
	for key, pods := range payers {
		if pods > s.pays[key.Envelope] || s.accounts.Used(key) != 0 {
			t.Fatalf("%s pays for %d pods, of at most %d, and %d GPUs are charged", key, pods, s.pays[key.Envelope],
				s.accounts.Used(key))
		}
	}
	if cost["west in east"]+cost["east in west"] > 0 || len(places) != len(s.missing) {
		t.Fatalf("who pays: %v", cost)
	}
}
