package topology

import "time"

// Request is pods to be placed all at once or not at all.
type Request struct {
	// Flavor is the GPU type that the nodes must have.
	Flavor string
	// GPUsPerPod is what each pod takes from one node, at least 1 (R14).
	GPUsPerPod int
	// Groups are the pods; slots come back in their order.
	Groups []Group
	// Confined says that each group lies in one fabric domain (R12). Otherwise pods go anywhere, though still to as few
	// domains as possible.
	Confined bool
	// OneDomain says that all groups lie in the same fabric domain: the one that already holds some of them, if any.
	OneDomain bool
	// Beside is what each pod asks for of its node beside GPUs; nil means nothing.
	Beside *Amounts
	// Excluded says which nodes may not be used this time; nil means none. It is asked for every node of the flavor, and
	// must answer the same throughout one Pack.
	Excluded func(node string) bool
	// From is the instant at which the pods come, and Until when they are gone at the latest; zero if nobody knows. Nodes
	// with an outage in between may not be used. Without From it does not matter.
	From, Until time.Time
	// Leaves is how long before an outage the pods are asked to leave a node at the soonest, if they can be moved (R35); 0
	// if they cannot. Nodes with an outage that is further ahead are used where there is no other way.
	Leaves time.Duration
	// Most is how many pods some nodes take at most, whatever room they have.
	Most map[string]int
	// Within are the keys of the fabric domains that may be used; nil means all. The others count as not there.
	Within map[string]bool
	// Purse bounds what can be paid for; nil pays for everything.
	Purse Purse

	fleet *Fleet
	asks  []ask // Beside, as the fleet numbers it
}

// Group is some pods of one group.
type Group struct {
	// Index is the group's number in its Run; slots carry it.
	Index int
	// Pods is how many active pods to place, 0 or more.
	Pods int
	// Domain is the key of the fabric domain where they must lie because other pods of the group already run there; ""
	// leaves the choice.
	Domain string
	// Spares is how many spare pods to place, 0 or more, of as many GPUs as an active one. They lie in the domain of the
	// active pods, and on other nodes than those if the domains that the pods go to allow it (R12).
	Spares int
	// Beside are the nodes that active pods of the group are on already, in any order.
	Beside []string
}

// Placement is where the pods of a Request go.
type Placement struct {
	// Slots has one entry a pod: the groups in the order of the Request, each group's active pods node by node, then its
	// spares.
	Slots []Slot
}

// Slot is the place of one pod.
type Slot struct {
	// Group is the Index of the pod's group.
	Group int
	// Spare says that it is the place of a spare.
	Spare bool
	// Node is the name of the node.
	Node string
	// Class is the payer class of the node, 0 without a Purse.
	Class int
	// Domain is the key of the fabric domain.
	Domain string
}

// choosy says that nodes may have fewer pods of the request than their GPUs could hold.
func (r *Request) choosy() bool { return r.Excluded != nil || len(r.asks) > 0 || len(r.Most) > 0 }

// room is how many pods of the request find room on a node.
func (r *Request) room(n *node) int {
	pods := n.free() / r.GPUsPerPod
	if pods == 0 || r.Excluded != nil && r.Excluded(n.Name) {
		return 0
	}
	if most, bounded := r.Most[n.Name]; bounded {
		pods = min(pods, most)
	}
	return r.fleet.roomBeside(n, r.asks, pods)
}

// size is how many pods of the group need room and money, spares and all.
func (g *Group) size() int { return g.Pods + g.Spares }

func (r *Request) pods() int {
	pods := 0
	for i := range r.Groups {
		pods += r.Groups[i].size()
	}
	return pods
}

func (r *Request) spares() int {
	spares := 0
	for i := range r.Groups {
		spares += r.Groups[i].Spares
	}
	return spares
}

// domains gives each group the domain that it is bound to, "" when it is free to choose.
func (r *Request) domains() []string {
	bound := make([]string, len(r.Groups))
	common := ""
	for i, g := range r.Groups {
		bound[i] = g.Domain
		if r.OneDomain && common == "" {
			common = g.Domain
		}
	}
	for i := range bound {
		if bound[i] == "" {
			bound[i] = common
		}
	}
	return bound
}
