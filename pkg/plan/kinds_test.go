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

// TestKindsOfPodsLeaveOneAnotherTheirNodes: pods of several kinds, each of which fills a node, have places wherever
// each could have one of its own.
func TestKindsOfPodsLeaveOneAnotherTheirNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, a := fleet(), accounts(west(16), east(16))
		nodes := []string{"a1", "a2", "b1", "b2"}
		for _, node := range nodes {
			switch rapid.SampledFrom([]string{"idle", "full", "cordoned"}).Draw(t, node) {
			case "full":
				f.Take(node, 8)
			case "cordoned":
				f.SetNode(topology.Node{Name: node, Flavor: "H100", GPUs: 8, Beside: cpu(500), Unschedulable: true,
					Labels: map[string]string{"region": regionOf(node), "fabric.domain": strings.ToUpper(node[:1])}})
			}
		}
		var kinds []*Kind
		for i := range rapid.IntRange(2, 3).Draw(t, "kinds") {
			kinds = append(kinds, kindOn(t, f, fmt.Sprint("kind", i), nodes))
		}
		d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1,
			PodsPerGroup: rapid.IntRange(2, 4).Draw(t, "pods")}
		missing := all(d)
		for i := range missing {
			missing[i].Kind = rapid.SampledFrom(kinds).Draw(t, "kind")
		}
		d.OneDomain = rapid.Bool().Draw(t, "in one domain")
		room := f.RoomFor(topology.Request{Flavor: "H100", GPUsPerPod: 8})
		may := func(k *Kind, node string) bool { return room(node) == 1 && !k.Barred(node) }
		want := eachHasOne(missing, may, nodes)
		if d.OneDomain {
			want = eachHasOne(missing, may, nodes[:2]) || eachHasOne(missing, may, nodes[2:])
		}
		if got := Prepare(a, d, Claim{Run: "r"}, missing, nil, noon).Fits(f); got != want {
			t.Fatalf("they have places: %v, want %v", got, want)
		}
	})
}

func regionOf(node string) string {
	if node[0] == 'a' {
		return "west"
	}
	return "east"
}

// eachHasOne reports whether each pod can have a node of its own, by trying all ways.
func eachHasOne(missing []Missing, may func(*Kind, string) bool, nodes []string) bool {
	if len(missing) == 0 {
		return true
	}
	for i, node := range nodes {
		if may(missing[0].Kind, node) && eachHasOne(missing[1:], may, slices.Delete(slices.Clone(nodes), i, i+1)) {
			return true
		}
	}
	return false
}

// kindOn draws a kind of pods and which of some nodes they may use.
func kindOn(t *rapid.T, f *topology.Fleet, name string, nodes []string) *Kind {
	k, barred := &Kind{Pod: name, Domains: map[string][]string{}}, map[string]bool{}
	for _, node := range nodes {
		if barred[node] = rapid.Bool().Draw(t, name+" may not use "+node); !barred[node] {
			k.Nodes = append(k.Nodes, node)
			k.Domains[f.DomainOf(node)] = append(k.Domains[f.DomainOf(node)], node)
		}
	}
	k.Barred = func(node string) bool { return barred[node] }
	return k
}

// TestKindsOfPodsHaveNodesThatTheyMayUse: whatever nodes each kind of a gang's pods may not use, all have places where
// they may be, paid for and with nobody beside them on the same GPUs, or it is said how many GPUs are short. Nothing is
// held for having been tried.
func TestKindsOfPodsHaveNodesThatTheyMayUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, a := fleet(), accounts(west(rapid.Int32Range(8, 16).Draw(t, "west")), east(16))
		d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: rapid.SampledFrom([]int{4, 8}).Draw(t, "GPUs"),
			Groups: rapid.IntRange(1, 2).Draw(t, "groups"), PodsPerGroup: rapid.IntRange(1, 2).Draw(t, "pods"),
			Confined: rapid.Bool().Draw(t, "confined")}
		var kinds []*Kind
		for i := range 2 {
			kinds = append(kinds, kindOn(t, f, fmt.Sprint("pod", i), []string{"a1", "a2", "b1", "b2"}))
		}
		missing := all(d)
		for i := range missing {
			missing[i].Kind = kinds[rapid.IntRange(0, 1).Draw(t, "kind")]
		}
		attempt := Prepare(a, d, Claim{Run: "r"}, missing, nil, noon)
		places, refusal := attempt.Place(f)
		if fits := attempt.Fits(f); fits != (refusal == nil) {
			t.Fatalf("it fits: %v, but is refused for %v", fits, refusal)
		}
		if refusal != nil && refusal.Message == "" {
			t.Fatal("it is not said why it has no place")
		}
		if short := attempt.Short(f); refusal == nil && short != nil || short != nil && short.ShortGPUs <= 0 &&
			short.UnitGPUs == 0 {
			t.Fatalf("it is short of %+v, and refused for %v", short, refusal)
		}
		held, at := map[string]int{}, map[int]string{}
		for _, p := range places {
			held[p.Node] += d.GPUsPerPod
			at[p.Index] = p.Node
		}
		for _, m := range missing {
			if node := at[m.Index]; refusal == nil && (node == "" || m.Kind.Barred(node)) {
				t.Fatalf("pod %d is on %q", m.Index, node)
			}
		}
		for _, node := range []string{"a1", "a2", "b1", "b2"} {
			if held[node] > 8 || f.Held(node) != 0 {
				t.Fatalf("%s has %d GPUs planned and %d held", node, held[node], f.Held(node))
			}
		}
		for _, name := range []string{"west", "east"} {
			if used := a.Used(budget.Key{Budget: "b", Envelope: name}); used != 0 {
				t.Fatalf("%s pays for %d GPUs", name, used)
			}
		}
	})
}

// TestEachGroupMayTryADomainInVain: a domain that holds none of many groups is in the way of none of them, though each
// would rather be there.
func TestEachGroupMayTryADomainInVain(t *testing.T) {
	const groups = 80
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	a, b := &Kind{Pod: "a", Domains: map[string][]string{}}, &Kind{Pod: "b", Domains: map[string][]string{}}
	for i := range groups + 1 {
		nodes := 2
		if i > 0 {
			nodes = 3 // which leaves the first with the fewest free GPUs
		}
		for j := range nodes {
			name := fmt.Sprintf("d%02d-%d", i, j)
			f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: cpu(500),
				Labels: map[string]string{"region": "west", "fabric.domain": fmt.Sprintf("d%02d", i)}})
			if i > 0 || j == 0 {
				for _, k := range []*Kind{a, b} {
					k.Nodes = append(k.Nodes, name)
					k.Domains[f.DomainOf(name)] = append(k.Domains[f.DomainOf(name)], name)
				}
			}
		}
	}
	for _, k := range []*Kind{a, b} {
		k.Barred = func(node string) bool { return node == "d00-1" }
	}
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: groups, PodsPerGroup: 2, Confined: true}
	missing := all(d)
	for i := range missing {
		missing[i].Kind = []*Kind{a, b}[i%2]
	}
	if !Prepare(accounts(west(2000)), d, Claim{Run: "r"}, missing, nil, noon).Fits(f) {
		t.Error("they have no places")
	}
}

// TestADomainWithoutRoomForAKindIsNotTried: whichever of many domains has nodes enough for each kind of a group's pods
// is found, although all others have as many free GPUs.
func TestADomainWithoutRoomForAKindIsNotTried(t *testing.T) {
	const domains = 120
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	a, b := &Kind{Pod: "a", Domains: map[string][]string{}}, &Kind{Pod: "b", Domains: map[string][]string{}}
	a.Barred = func(node string) bool { return !strings.HasSuffix(node, "a") }
	b.Barred = func(node string) bool { return !strings.HasSuffix(node, "b") }
	for i := range domains {
		ofA := 1 + 2*(i%2) // of four
		if i == domains-1 {
			ofA = 2
		}
		for j := range 4 {
			kind := a
			if j >= ofA {
				kind = b
			}
			name := fmt.Sprintf("d%03d-%d%s", i, j, kind.Pod)
			f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: cpu(500),
				Labels: map[string]string{"region": "west", "fabric.domain": fmt.Sprintf("d%03d", i)}})
			kind.Nodes = append(kind.Nodes, name)
			kind.Domains[f.DomainOf(name)] = append(kind.Domains[f.DomainOf(name)], name)
		}
	}
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 4, Confined: true}
	missing := all(d)
	for i := range missing {
		missing[i].Kind = []*Kind{a, b}[i/2]
	}
	if !Prepare(accounts(west(2000)), d, Claim{Run: "r"}, missing, nil, noon).Fits(f) {
		t.Error("they have no places")
	}
}

// TestNoNodeIsLookedAtWhereThatCanLeadToNothing: single pods are not tried on so many nodes that the search could not
// come to its end.
func TestNoNodeIsLookedAtWhereThatCanLeadToNothing(t *testing.T) {
	const pods = 120
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	kinds := []*Kind{{Pod: "a"}, {Pod: "b"}}
	for i := range pods {
		name := fmt.Sprintf("n%03d", i)
		f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: cpu(500),
			Labels: map[string]string{"region": "west", "fabric.domain": "d"}})
		for _, k := range kinds {
			k.Nodes = append(k.Nodes, name)
		}
	}
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: pods}
	missing := all(d)
	for i := range missing {
		missing[i].Kind = kinds[i%2]
	}
	p := Prepare(accounts(west(2000)), d, Claim{Run: "r"}, missing, nil, noon).on(f)
	if found := p.each(); found || p.looks > 0 {
		t.Errorf("%d nodes have been looked at, and places found: %v", p.looks, found)
	}
}

// TestANodeTakesPodsThatAskForDifferentThings: what one kind leaves of it is another's, so that it takes more pods than
// any kind alone would find room for.
func TestANodeTakesPodsThatAskForDifferentThings(t *testing.T) {
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	nodes := []string{"n1", "n2"}
	for _, name := range nodes {
		f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: asked{500, 500}.amounts(),
			Labels: map[string]string{"region": "west", "fabric.domain": "d"}})
	}
	both, cpu, memory := asked{200, 200}, asked{300, 0}, asked{0, 300}
	var kinds []*Kind
	for _, asks := range []asked{both, cpu, memory} {
		kinds = append(kinds, &Kind{Beside: asks.amounts(), Nodes: nodes})
	}
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 2, Groups: 1, PodsPerGroup: 6}
	missing := all(d)
	for i := range missing {
		missing[i].Kind = kinds[i/2]
	}
	if !Prepare(accounts(west(2000)), d, Claim{Run: "r"}, missing, nil, noon).Fits(f) {
		t.Error("they have no places")
	}
}

// TestARefusalSaysInWhatPodsDiffer: by which nodes they may use, by what they ask for beside GPUs, or by both.
func TestARefusalSaysInWhatPodsDiffer(t *testing.T) {
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	for _, name := range []string{"n1", "n2"} {
		f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: cpu(500),
			Labels: map[string]string{"region": "west", "fabric.domain": "d"}})
	}
	little, either, one := cpu(100), []string{"n1", "n2"}, []string{"n1"}
	onFirst, nowhere := func(node string) bool { return node == "n2" }, func(string) bool { return true }
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 2}
	for want, kinds := range map[string][2]Kind{
		"its pods differ in what they ask for beside GPUs; for 1 of 2": {{Beside: little, Nodes: either},
			{Beside: cpu(900), Nodes: either}},
		"its pods differ in which nodes they may use; for 1 of 2": {{Beside: little, Nodes: either},
			{Says: "k", Beside: little, Barred: nowhere}},
		"its pods differ in where other scheduling rules let them be; for 1 of 2": {{Beside: little, Nodes: either},
			{Beside: little, Barred: nowhere}},
		"its pods differ in which nodes they may use and in what they ask for beside GPUs; for 1 of 2": {
			{Beside: little, Nodes: either}, {Says: "k", Beside: cpu(900), Barred: onFirst, Nodes: one}},
		"as many are free, but its pods differ in what they ask for beside GPUs: no place": {
			{Beside: little, Barred: onFirst, Nodes: one}, {Beside: cpu(300), Barred: onFirst, Nodes: one}},
	} {
		missing := all(d)
		missing[0].Kind, missing[1].Kind = &kinds[0], &kinds[1]
		_, refusal := Prepare(accounts(west(2000)), d, Claim{Run: "r"}, missing, nil, noon).Place(f)
		if refusal == nil || !strings.Contains(refusal.Message, want) {
			t.Errorf("it is refused for %+v, want %q", refusal, want)
		}
	}
}

// TestSinglePodsAreTriedForAnAttemptAsAWhole: however often it is asked, no more nodes are looked at for them in all.
func TestSinglePodsAreTriedForAnAttemptAsAWhole(t *testing.T) {
	f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	f.SetSelectorKeys([]string{"region"})
	nodes := []string{"n1", "n2", "n3"}
	for _, name := range nodes {
		f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: asked{500, 500}.amounts(),
			Labels: map[string]string{"region": "west", "fabric.domain": "d"}})
	}
	kinds := []*Kind{{Beside: asked{200, 300}.amounts(), Nodes: nodes}, {Beside: asked{300, 300}.amounts(), Nodes: nodes}}
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 2, Groups: 1, PodsPerGroup: 4}
	missing := all(d)
	for i := range missing {
		missing[i].Kind = kinds[i%2]
	}
	attempt := Prepare(accounts(west(2000)), d, Claim{Run: "r"}, missing, nil, noon)
	p := attempt.on(f)
	p.kinds[0].missing, p.kinds[1].missing = missing[:1], missing[1:2] // which have places
	if found := p.each(); !found || attempt.several.looks != p.looks || p.looks == 0 {
		t.Fatalf("places are found: %v, at %d looks of %d", found, p.looks, attempt.several.looks)
	}
	attempt.several.looks = mostLooksInAll
	if again := attempt.Within(nil).on(f); again.each() || again.looks > 1 {
		t.Errorf("single pods are tried at %d looks more", again.looks)
	}
}

// TestADomainInWhichASpareSharesANodeIsPassedOver for one in which it stands apart from the ranks of its group.
func TestADomainInWhichASpareSharesANodeIsPassedOver(t *testing.T) {
	f := fleet()
	f.Hold("a2", 4, nil)
	in := func(nodes ...string) *Kind {
		k := &Kind{Nodes: nodes, Domains: map[string][]string{}}
		for _, node := range nodes {
			k.Domains[f.DomainOf(node)] = append(k.Domains[f.DomainOf(node)], node)
		}
		k.Barred = func(node string) bool { return !slices.Contains(nodes, node) }
		return k
	}
	first, second := in("a1", "b1", "b2"), in("a2", "b1")
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Groups: 1, PodsPerGroup: 2, SparesPerGroup: 1,
		Confined: true}
	missing := append(all(d), Missing{Part: rank.Part{Spare: true}, Kind: first})
	missing[0].Kind, missing[1].Kind = first, second
	p := Prepare(accounts(west(2000), east(2000)), d, Claim{Run: "r"}, missing, nil, noon).on(f)
	p.strict = true
	if found := p.apart(); !found {
		t.Fatal("no places are found")
	}
	if out, paid := p.assignments(); !paid || besideOwn(out) {
		t.Errorf("its spare is on the node of a rank: %+v", out)
	}
}
