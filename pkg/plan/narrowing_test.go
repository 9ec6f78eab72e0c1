package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// oneByOne tries each width with everything anew.
func (n *Narrowing) oneByOne() int {
	for width := n.Width - n.Demand.StepPods; width >= n.Least; width -= n.Demand.StepPods {
		d := n.Demand.At(width)
		missing := d.Within(n.Missing)
		fork := NewFork(n.Fleet, n.Accounts)
		for _, p := range n.Placed {
			if !d.Has(p.Part) {
				fork.Give(p.Node, p.GPUs, p.Beside)
			}
		}
		fits := len(missing) == 0 || Fits(n.Fleet, n.Accounts, d, n.Claim(missing), missing, n.Excluded, n.Now)
		fork.Revert()
		if fits {
			return width
		}
	}
	return 0
}

// drawNarrowing draws a gang of up to 24 pods with spares on nodes of some domains, some of which are excluded. Others
// hold GPUs there, and some of the gang's pods are missing.
func drawNarrowing(t *rapid.T) *Narrowing {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: rapid.IntRange(1, 4).Draw(t, "each"),
		Beside: cpu(rapid.Int64Range(0, 2).Draw(t, "CPU")), OneDomain: rapid.Bool().Draw(t, "one domain"), LeastPods: 1}
	groups := rapid.IntRange(1, 6).Draw(t, "groups")
	d.Confined = rapid.Bool().Draw(t, "confined")
	if d.Confined {
		d.Groups, d.PodsPerGroup = groups, rapid.IntRange(1, 4).Draw(t, "pods of a group")
		d.StepPods = d.PodsPerGroup
		d.LeastPods = d.PodsPerGroup
	} else {
		d.Groups, d.PodsPerGroup, d.StepPods = 1, 4*groups, 1
	}
	d.SparesPerGroup = rapid.IntRange(0, 1).Draw(t, "spares")
	n := &Narrowing{Demand: d, Width: d.Pods(), Least: d.LeastPods, Now: noon,
		Claim: func(missing []Missing) Claim { return Claim{Run: "run"} }}
	n.Fleet = topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
	n.Fleet.SetSelectorKeys([]string{"region"})
	excluded, domains := map[string]bool{}, rapid.IntRange(1, 4).Draw(t, "domains")
	for i := range rapid.IntRange(2, 16).Draw(t, "nodes") {
		name, domain := fmt.Sprintf("n%02d", i), i%domains
		n.Fleet.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8, Beside: cpu(8), Labels: map[string]string{
			"region": []string{"west", "east"}[domain%2], "fabric.domain": fmt.Sprint(domain)}})
		n.Fleet.Take(name, rapid.IntRange(0, 4).Draw(t, "others'"))
		excluded[name] = rapid.IntRange(0, 4).Draw(t, "excluded") == 0
	}
	for name, flavor := range map[string]string{"plain": "", "broken": "H100"} { // which have no GPUs
		n.Fleet.SetNode(topology.Node{Name: name, Flavor: flavor, Beside: cpu(500), Labels: map[string]string{
			"region": "west", "fabric.domain": "0"}})
	}
	n.Excluded = func(node string) bool { return excluded[node] }
	n.Accounts = accounts(west(rapid.Int32Range(0, 48).Draw(t, "west")), east(rapid.Int32Range(0, 48).Draw(t, "east")))
	n.placeSome(t)
	return n
}

// placeSome has the gang have lost some of its pods, where it fits.
func (n *Narrowing) placeSome(t *rapid.T) {
	d, missing := n.Demand, []Missing{}
	for i := range d.Pods() {
		missing = append(missing, Missing{Part: rank.Part{Index: i}})
	}
	for i := range d.Spares() {
		missing = append(missing, Missing{Part: rank.Part{Index: i, Spare: true}})
	}
	rich := accounts(west(1000), east(1000))
	placed, refusal := Gang(n.Fleet, rich, d, Claim{}, missing, nil, noon)
	if refusal != nil {
		return // it has no room, and lacks nothing
	}
	domains := map[int]string{}
	for _, a := range placed {
		if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
			n.Missing = append(n.Missing, Missing{Part: a.Part})
			if rapid.Bool().Draw(t, "taken") {
				n.Fleet.Take(a.Node, d.GPUsPerPod)
			}
			continue
		}
		n.Fleet.Hold(a.Node, d.GPUsPerPod, d.Beside)
		n.Placed = append(n.Placed, Placed{Part: a.Part, Node: a.Node, GPUs: d.GPUsPerPod, Beside: d.Beside})
		if d.Confined || d.OneDomain {
			domains[d.Group(a.Part)] = n.Fleet.DomainOf(a.Node)
		}
	}
	for i := range n.Missing {
		n.Missing[i].Domain = domains[d.Group(n.Missing[i].Part)]
	}
}

// A gang that lost ranks goes on at the width that it has when each is tried, and the look leaves nothing behind.
func TestNarrowerWidthsAreFoundAsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNarrowing(t)
		want, free := n.oneByOne(), n.Fleet.FreeOf("H100")
		if got := n.Widest(); got != want {
			t.Fatalf("it goes on with %d pods, want %d", got, want)
		}
		if left := n.Fleet.FreeOf("H100"); left != free {
			t.Fatalf("%d GPUs are free afterwards, and were %d", left, free)
		}
	})
}

// A width in halves is one at which the gang fits, and the widest of those.
func TestNarrowerWidthsInHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNarrowing(t)
		want := n.oneByOne()
		n.fork = NewFork(n.Fleet, n.Accounts)
		defer n.fork.Revert()
		n.order()
		if got := n.search(n.Width - n.Demand.StepPods); n.Width > n.Least && got != want {
			t.Fatalf("it goes on with %d pods, want %d", got, want)
		}
	})
}

func TestFromWhichWidthAPodTakesPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Demand{Confined: rapid.Bool().Draw(t, "confined"), Groups: 1,
			PodsPerGroup: rapid.IntRange(1, 4).Draw(t, "pods"), SparesPerGroup: rapid.IntRange(0, 2).Draw(t, "spares")}
		p := rank.Part{Index: rapid.IntRange(0, 12).Draw(t, "index"), Spare: rapid.Bool().Draw(t, "spare")}
		width := rapid.IntRange(0, 16).Draw(t, "width")
		if got, want := d.from(p) <= width, d.At(width).Has(p); got != want {
			t.Fatalf("%+v takes part from %d on in %+v; at %d it does: %v", p, d.from(p), d, width, want)
		}
	})
}

// BenchmarkNarrower looks for the width of a Run of 6,000 pods, or ten times as many, that lost its first one: in
// groups of 8, where the others of its group are, and where all nodes of their domain or of the fleet are excluded.
func BenchmarkNarrower(b *testing.B) {
	for _, kind := range []string{"groups", "hopeless groups", "hopeless"} {
		for _, pods := range []int{6000, 60000} {
			benchmarkNarrower(b, kind, pods)
		}
	}
}

func benchmarkNarrower(b *testing.B, kind string, pods int) {
	b.Run(fmt.Sprintf("%s/%d", kind, pods), func(b *testing.B) {
		d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: pods / 8, PodsPerGroup: 8, Confined: true,
			LeastPods: 8, StepPods: 8}
		if kind == "hopeless" {
			d.Groups, d.PodsPerGroup, d.Confined = 1, pods, false
		}
		f := topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain")
		n := &Narrowing{Fleet: f, Accounts: budget.NewAccounts(budget.Rates{}), Demand: d, Width: pods, Least: 8,
			Now: noon, Claim: func([]Missing) Claim { return Claim{} }, Missing: []Missing{{}}}
		n.Accounts = accounts(west(1_000_000))
		n.Excluded = func(node string) bool { return kind == "hopeless" || kind == "hopeless groups" && node < "n00016" }
		for i := range pods {
			node, domain := fmt.Sprintf("n%05d", i), fmt.Sprintf("d%04d", i/16)
			f.SetNode(topology.Node{Name: node, Flavor: "H100", GPUs: 8,
				Labels: map[string]string{"region": "west", "fabric.domain": domain}})
			f.Take(node, 8)
			if i > 0 {
				n.Placed = append(n.Placed, Placed{Part: rank.Part{Index: i}, Node: node, GPUs: 8})
			}
		}
		if d.Confined {
			n.Missing[0].Domain = f.DomainOf("n00001")
		}
		for b.Loop() {
			n.Widest()
		}
	})
}
