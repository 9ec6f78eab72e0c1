package topology

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
	// Excluded says which nodes may not be used this time; nil means none. It is asked for every node of the flavor, and
	// must answer the same throughout one Pack.
	Excluded func(node string) bool
	// Purse bounds what can be paid for; nil pays for everything.
	Purse Purse
}

// Group is some pods of one group.
type Group struct {
	// Index is the group's number in its Run; slots carry it.
	Index int
	// Pods is how many pods to place, 0 or more.
	Pods int
	// Domain is the key of the fabric domain where they must lie because other pods of the group already run there; ""
	// leaves the choice.
	Domain string
}

// Placement is where the pods of a Request go.
type Placement struct {
	// Slots has one entry a pod: the groups in the order of the Request, each group's pods node by node.
	Slots []Slot
}

// Slot is the place of one pod.
type Slot struct {
	// Group is the Index of the pod's group.
	Group int
	// Node is the name of the node.
	Node string
	// Class is the payer class of the node, 0 without a Purse.
	Class int
	// Domain is the key of the fabric domain.
	Domain string
}

func (r *Request) pods() int {
	pods := 0
	for _, g := range r.Groups {
		pods += g.Pods
	}
	return pods
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
