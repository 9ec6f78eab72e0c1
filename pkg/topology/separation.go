package topology

import (
	"cmp"
	"slices"
)

// separation is a local search: it exchanges and moves pods until no single step leaves fewer spares on nodes with
// active pods of their group. Spares that have nodes of their own are apart already.
type separation struct {
	slots     []Slot
	first     []int // by group, its first slot
	groups    []Group
	spareBins []spareBin
	counts    map[standing]int
	free      map[string]int // pods that a node still has room for
}

// standing is pods of one role of a group on a node.
type standing struct {
	group int
	node  string
	spare bool
}

func newSeparation(r *Request, p *problem, spareBins []spareBin, d *assigner) *separation {
	c := &separation{slots: d.slots, first: d.at, groups: r.Groups, spareBins: spareBins, counts: map[standing]int{},
		free: map[string]int{}}
	for i := range c.groups {
		for _, node := range c.groups[i].Beside {
			c.counts[standing{i, node, false}]++
		}
		for k := range c.window(i) {
			c.counts[standing{i, c.window(i)[k].Node, c.window(i)[k].Spare}]++
			c.free[c.window(i)[k].Node]--
		}
	}
	for i := range spareBins {
		for _, n := range spareBins[i].nodes {
			c.free[n.Name] += r.room(n)
		}
	}
	return c
}

// window is the slots of a group.
func (c *separation) window(i int) []Slot { return c.slots[c.first[i]:][:c.groups[i].size()] }

// improve looks, for every spare on a node with active pods of its group, for a step that leaves fewer such spares: the
// spare or one of these active pods changes places with another pod of the domain, or goes where there is room.
func (c *separation) improve() {
	for i := range c.groups {
		for k := range c.window(i) {
			s := &c.window(i)[k]
			for s.Spare && c.collisions(i, s.Node) > 0 && c.improveOne(i, s.Node) {
			}
		}
	}
	for i := range c.groups {
		gather(c.window(i)[:c.groups[i].Pods])
		gather(c.window(i)[c.groups[i].Pods:])
	}
}

// collisions is how many spares of a group share a node with its active pods.
func (c *separation) collisions(i int, node string) int {
	if c.counts[standing{i, node, false}] == 0 {
		return 0
	}
	return c.counts[standing{i, node, true}]
}

// improveOne makes one step that helps a group's pods on a node, and says whether there was one.
func (c *separation) improveOne(i int, node string) bool {
	for k := range c.window(i) {
		if s := &c.window(i)[k]; s.Node == node && (c.swap(i, s) || c.move(i, s)) {
			return true
		}
	}
	return false
}

// swap exchanges a pod with another of its domain if that leaves fewer collisions.
func (c *separation) swap(i int, s *Slot) bool {
	for j := range c.groups {
		for k := range c.window(j) {
			other := &c.window(j)[k]
			if other.Domain != s.Domain || other.Node == s.Node || i == j && other.Spare == s.Spare {
				continue
			}
			before := c.collisionsOn(i, j, s.Node, other.Node)
			c.exchange(i, s, j, other)
			if c.collisionsOn(i, j, s.Node, other.Node) < before {
				return true
			}
			c.exchange(i, s, j, other)
		}
	}
	return false
}

// collisionsOn counts the collisions of two groups, or of one, on two nodes.
func (c *separation) collisionsOn(i, j int, a, b string) int {
	n := c.collisions(i, a) + c.collisions(i, b)
	if i != j {
		n += c.collisions(j, a) + c.collisions(j, b)
	}
	return n
}

func (c *separation) exchange(i int, s *Slot, j int, other *Slot) {
	c.remove(i, s)
	c.remove(j, other)
	s.Node, other.Node = other.Node, s.Node
	s.Class, other.Class = other.Class, s.Class
	c.add(i, s)
	c.add(j, other)
}

func (c *separation) remove(i int, s *Slot) {
	c.counts[standing{i, s.Node, s.Spare}]--
	c.free[s.Node]++
}

func (c *separation) add(i int, s *Slot) {
	c.counts[standing{i, s.Node, s.Spare}]++
	c.free[s.Node]--
}

// move takes a pod to a node of the same bin that has room if that leaves fewer collisions.
func (c *separation) move(i int, s *Slot) bool {
	for l := range c.spareBins {
		nodes := c.spareBins[l].nodes
		if !slices.ContainsFunc(nodes, func(n *node) bool { return n.Name == s.Node }) {
			continue
		}
		from, class := s.Node, s.Class
		for _, n := range nodes {
			if c.free[n.Name] == 0 {
				continue
			}
			before := c.collisionsOn(i, i, from, n.Name)
			c.remove(i, s)
			s.Node, s.Class = n.Name, n.pool.set.class
			c.add(i, s)
			if c.collisionsOn(i, i, from, n.Name) < before {
				return true
			}
			c.remove(i, s)
			s.Node, s.Class = from, class
			c.add(i, s)
		}
	}
	return false
}

// gather brings the slots of one node together, in order of the nodes' first slots.
func gather(slots []Slot) {
	first := map[string]int{}
	for i := range slots {
		if _, seen := first[slots[i].Node]; !seen {
			first[slots[i].Node] = i
		}
	}
	slices.SortStableFunc(slots, func(a, b Slot) int { return cmp.Compare(first[a.Node], first[b.Node]) })
}
