package topology

import (
	"cmp"
	"slices"
)

// crowd knows which groups' pods are on which nodes, and parts the spares that could not be given nodes of their own
// from their groups' active pods.
type crowd struct {
	*dealer
	groups []Group
	stands []stand
	here   map[presence]int
	free   map[string]int // pods that a node still has room for
}

// presence is pods of one role of a group on a node.
type presence struct {
	group int
	node  string
	spare bool
}

func newCrowd(r *Request, p *problem, stands []stand, d *dealer) *crowd {
	c := &crowd{dealer: d, groups: r.Groups, stands: stands, here: map[presence]int{}, free: map[string]int{}}
	for i := range c.groups {
		for _, node := range c.groups[i].Beside {
			c.here[presence{i, node, false}]++
		}
		for k := range c.window(i) {
			c.here[presence{i, c.window(i)[k].Node, c.window(i)[k].Spare}]++
			c.free[c.window(i)[k].Node]--
		}
	}
	for i := range stands {
		for _, n := range stands[i].nodes {
			c.free[n.Name] += n.free() / p.gpus
		}
	}
	return c
}

// window is the slots of a group.
func (c *crowd) window(i int) []Slot { return c.slots[c.at[i]:][:c.groups[i].size()] }

// part looks, for every spare that is beside its group's active pods, for a change that leaves fewer such spares: the
// spare or one of those active pods changes places with another pod of the domain, or goes where there is room.
func (c *crowd) part() {
	for i := range c.groups {
		for k := range c.window(i) {
			s := &c.window(i)[k]
			for s.Spare && c.crowded(i, s.Node) > 0 && c.ease(i, s.Node) {
			}
		}
	}
	for i := range c.groups {
		gather(c.window(i)[:c.groups[i].Pods])
		gather(c.window(i)[c.groups[i].Pods:])
	}
}

// crowded is how many spares of a group are beside its active pods on a node.
func (c *crowd) crowded(i int, node string) int {
	if c.here[presence{i, node, false}] == 0 {
		return 0
	}
	return c.here[presence{i, node, true}]
}

// ease makes one change for the better of a group's pods on a node, and says whether there was one.
func (c *crowd) ease(i int, node string) bool {
	for k := range c.window(i) {
		if s := &c.window(i)[k]; s.Node == node && (c.swap(i, s) || c.move(i, s)) {
			return true
		}
	}
	return false
}

// swap exchanges a pod with another of its domain if that leaves fewer spares beside active pods.
func (c *crowd) swap(i int, s *Slot) bool {
	for j := range c.groups {
		for k := range c.window(j) {
			other := &c.window(j)[k]
			if other.Domain != s.Domain || other.Node == s.Node || i == j && other.Spare == s.Spare {
				continue
			}
			before := c.around(i, j, s.Node, other.Node)
			c.exchange(i, s, j, other)
			if c.around(i, j, s.Node, other.Node) < before {
				return true
			}
			c.exchange(i, s, j, other)
		}
	}
	return false
}

// around counts the spares of two groups, or of one, that are beside active pods on two nodes.
func (c *crowd) around(i, j int, a, b string) int {
	n := c.crowded(i, a) + c.crowded(i, b)
	if i != j {
		n += c.crowded(j, a) + c.crowded(j, b)
	}
	return n
}

func (c *crowd) exchange(i int, s *Slot, j int, other *Slot) {
	c.leave(i, s)
	c.leave(j, other)
	s.Node, other.Node = other.Node, s.Node
	s.Class, other.Class = other.Class, s.Class
	c.enter(i, s)
	c.enter(j, other)
}

func (c *crowd) leave(i int, s *Slot) {
	c.here[presence{i, s.Node, s.Spare}]--
	c.free[s.Node]++
}

func (c *crowd) enter(i int, s *Slot) {
	c.here[presence{i, s.Node, s.Spare}]++
	c.free[s.Node]--
}

// move takes a pod to a node of the same lot that has room if that leaves fewer spares beside active pods.
func (c *crowd) move(i int, s *Slot) bool {
	for l := range c.stands {
		nodes := c.stands[l].nodes
		if !slices.ContainsFunc(nodes, func(n *node) bool { return n.Name == s.Node }) {
			continue
		}
		from, class := s.Node, s.Class
		for _, n := range nodes {
			if c.free[n.Name] == 0 {
				continue
			}
			before := c.around(i, i, from, n.Name)
			c.leave(i, s)
			s.Node, s.Class = n.Name, n.pool.set.class
			c.enter(i, s)
			if c.around(i, i, from, n.Name) < before {
				return true
			}
			c.leave(i, s)
			s.Node, s.Class = from, class
			c.enter(i, s)
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
