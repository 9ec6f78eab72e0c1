package payflow

// network is a flow network with whole capacities, for max-flow by shortest augmenting paths (Edmonds–Karp). It keeps
// the residual capacity of each arc; arcs i and i^1 are an arc and its reverse, which lets back through what was sent.
type network struct {
	arcs  []arc
	out   [][]int // arcs by the node that they leave
	via   []int   // the arc by which the search came to a node, -1 for none
	queue []int
}

type arc struct{ to, left int }

func newNetwork(nodes int) *network {
	return &network{out: make([][]int, nodes), via: make([]int, nodes)}
}

// join adds an arc of a capacity and returns its index.
func (n *network) join(from, to, capacity int) int {
	i := len(n.arcs)
	n.arcs = append(n.arcs, arc{to, capacity}, arc{from, 0})
	n.out[from] = append(n.out[from], i)
	n.out[to] = append(n.out[to], i+1)
	return i
}

// sent is what an arc carries.
func (n *network) sent(i int) int { return n.arcs[i^1].left }

// push sends up to an amount from one node to another along a shortest path, and returns how much; 0 if there is no
// path.
func (n *network) push(from, to, most int) int {
	if most <= 0 || !n.reach(from, to) {
		return 0
	}
	for at := to; at != from; at = n.arcs[n.via[at]^1].to {
		most = min(most, n.arcs[n.via[at]].left)
	}
	for at := to; at != from; at = n.arcs[n.via[at]^1].to {
		n.arcs[n.via[at]].left -= most
		n.arcs[n.via[at]^1].left += most
	}
	return most
}

// raise has an arc carry as much as it can without changing the whole flow, fixes it, and returns how much that is.
func (n *network) raise(i int) int {
	sent, room := n.sent(i), n.arcs[i].left
	from, to := n.arcs[i^1].to, n.arcs[i].to
	n.arcs[i].left, n.arcs[i^1].left = 0, 0
	for {
		more := n.push(to, from, room)
		if more == 0 {
			break
		}
		sent, room = sent+more, room-more
	}
	return sent
}

// reach searches breadth first for a shortest path with room.
func (n *network) reach(from, to int) bool {
	for i := range n.via {
		n.via[i] = -1
	}
	n.queue = append(n.queue[:0], from)
	for head := 0; head < len(n.queue); head++ {
		for _, i := range n.out[n.queue[head]] {
			next := n.arcs[i].to
			if n.arcs[i].left == 0 || next == from || n.via[next] >= 0 {
				continue
			}
			n.via[next] = i
			if next == to {
				return true
			}
			n.queue = append(n.queue, next)
		}
	}
	return false
}
