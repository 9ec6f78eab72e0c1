package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// crowdedSpares counts the spares of a placement that are on a node with active pods of their group.
func (w *world) crowdedSpares(p Placement) int {
	type place struct{ group, node any }
	active := map[place]bool{}
	for _, g := range w.request.Groups {
		for _, node := range g.Beside {
			active[place{g.Index, node}] = true
		}
	}
	for _, s := range p.Slots {
		if !s.Spare {
			active[place{s.Group, s.Node}] = true
		}
	}
	crowded := 0
	for _, s := range p.Slots {
		if s.Spare && active[place{s.Group, s.Node}] {
			crowded++
		}
	}
	return crowded
}

// parting is the brute force: it tries every way to give the pods of a placement to nodes, within the domains that they
// have, and looks for one with fewer crowded spares.
type parting struct {
	w       *world
	slots   []Slot
	room    map[string]int
	perPool map[[2]string]int // pods that go to a domain and a payer class
	least   int
}

func (w *world) parting(p Placement) *parting {
	b := &parting{w: w, slots: append([]Slot(nil), p.Slots...), room: map[string]int{}, perPool: map[[2]string]int{}}
	for _, n := range w.nodes {
		if w.legal(n) && n.Flavor == w.request.Flavor && !n.Unschedulable && !w.excluded[n.Name] {
			b.room[n.Name] = w.room(n)
		}
	}
	for _, s := range p.Slots {
		b.perPool[b.pool(w.node(s.Node))]++
	}
	b.least = w.crowdedSpares(p)
	return b
}

// pool is what a pod does not leave: the domain and, where a Purse tells nodes apart, their class.
func (b *parting) pool(n Node) [2]string {
	class := ""
	if b.w.purse != nil {
		class = string(rune('0' + b.w.purse.classes[n.Labels["team"]]))
		if _, ok := b.w.purse.classes[n.Labels["team"]]; !ok {
			class = "nobody"
		}
	}
	return [2]string{strings.Join(b.w.path(n), "/"), class}
}

// domainOf is the domain that a group is bound to.
func (w *world) domainOf(index int) string {
	for _, g := range w.request.Groups {
		if g.Index == index {
			return g.Domain
		}
	}
	return ""
}

func (b *parting) try(k int) {
	if b.least == 0 {
		return
	}
	if k == len(b.slots) {
		b.least = min(b.least, b.w.crowdedSpares(Placement{Slots: b.slots}))
		return
	}
	loose := !b.w.request.Confined && !b.w.request.OneDomain && b.w.domainOf(b.slots[k].Group) == ""
	for _, n := range b.w.nodes {
		pool := b.pool(n)
		if b.room[n.Name] == 0 || b.perPool[pool] == 0 || !loose && pool[0] != b.slots[k].Domain {
			continue
		}
		b.room[n.Name]--
		b.perPool[pool]--
		node := b.slots[k].Node
		b.slots[k].Node = n.Name
		b.try(k + 1)
		b.slots[k].Node = node
		b.perPool[pool]++
		b.room[n.Name]++
	}
}

// TestSparesStandApart compares the packer with brute force: no spare is on a node with its group's active pods if the
// same domains have nodes for it. Where several groups compete for nodes, and not all have spares, or some have pods
// there already or may lie in any domain, the packer comes close and no more.
func TestSparesStandApart(t *testing.T) {
	for range 50 {
		rapid.Check(t, checkApart)
	}
}

func checkApart(t *rapid.T) {
	w := drawWorld(t, 6)
	placement, shortfall := w.fleet(w.inOrder()).Pack(w.request)
	if shortfall != nil || w.request.spares() == 0 {
		return
	}
	groups, unequal := 0, !w.request.Confined && !w.request.OneDomain
	for _, g := range w.request.Groups {
		groups += min(1, g.size())
		unequal = unequal || len(g.Beside) > 0 || g.Pods > 0 && g.Spares == 0
	}
	if groups > 1 && unequal {
		return
	}
	got := w.crowdedSpares(placement)
	best := w.parting(placement)
	if best.try(0); got > best.least {
		t.Fatalf("%d spares are beside their group's active pods, and %d would do:\n%+v\n%+v", got, best.least, placement, w)
	}
}

func TestSpares(t *testing.T) {
	spares := func(gpus int, groups ...Group) Request {
		return Request{Flavor: "H100", GPUsPerPod: gpus, Groups: groups, Confined: true}
	}
	for _, c := range []struct {
		name    string
		fleet   *Fleet
		request Request
		want    []string
	}{
		{
			"a node of their own", sketch("west/a n1=8 n2=8 n3=8"), spares(2, Group{Pods: 5, Spares: 1}),
			[]string{"0: west/a n1 n1 n1 n1 n2", "0 spare: west/a n3"},
		}, {
			"the smallest room that holds them", sketch("west/a n1=8 n2=8 n3=4 n4=8-6"), spares(2, Group{Pods: 4, Spares: 3}),
			[]string{"0: west/a n1 n1 n1 n1", "0 spare: west/a n4 n3 n3"},
		}, {
			"on a node with active pods rather than not at all", sketch("west/a n1=8"), spares(2, Group{Pods: 3, Spares: 1}),
			[]string{"0: west/a n1 n1 n1", "0 spare: west/a n1"},
		}, {
			"as many apart as can be", sketch("west/a n1=8 n2=4"), spares(2, Group{Pods: 3, Spares: 3}),
			[]string{"0: west/a n1 n1 n1", "0 spare: west/a n2 n2 n1"},
		}, {
			"with the other group's pods when no node is left", sketch("west/a n1=8 n2=8"),
			spares(2, Group{Index: 0, Pods: 3, Spares: 1}, Group{Index: 1, Pods: 3, Spares: 1}),
			[]string{"0: west/a n1 n1 n1", "0 spare: west/a n2", "1: west/a n2 n2 n2", "1 spare: west/a n1"},
		}, {
			"in the domain of their group, not beside its pods", sketch("west/a n1=8-4 n2=8", "west/b n3=8-4"),
			spares(4, Group{Domain: "west/a", Spares: 1, Beside: []string{"n1"}}),
			[]string{"0 spare: west/a n2"},
		}, {
			"beside its pods when the domain has nothing else", sketch("west/a n1=8-4", "west/b n3=8-4"),
			spares(4, Group{Domain: "west/a", Spares: 1, Beside: []string{"n1"}}),
			[]string{"0 spare: west/a n1"},
		},
	} {
		c.request.Flavor = "H100"
		got, short := c.fleet.Pack(c.request)
		if short != nil {
			t.Errorf("%s: %s", c.name, short)
		}
		if diff := cmp.Diff(c.want, show(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestAGroupAndItsSpareFillADomain is the worked example of a domain of 72 GPUs: 16 nodes for the group, one for its
// spare, one idle.
func TestAGroupAndItsSpareFillADomain(t *testing.T) {
	var nodes strings.Builder
	for i := range 18 {
		fmt.Fprintf(&nodes, " n%02d=4", i)
	}
	got, short := sketch("west/a" + nodes.String()).Pack(
		Request{Flavor: "H100", GPUsPerPod: 4, Groups: []Group{{Pods: 16, Spares: 1}}, Confined: true})
	if short != nil {
		t.Fatal(short)
	}
	used := map[string]bool{}
	for _, s := range got.Slots {
		used[s.Node] = true
	}
	if len(got.Slots) != 17 || len(used) != 17 {
		t.Errorf("%d pods are on %d nodes, want 17 on 17: %v", len(got.Slots), len(used), show(got))
	}
}
