package budget

// node is what payers look at of a node.
type node struct {
	flavor string
	labels map[string]string
}

// nodes are what is known of nodes, by name.
type nodes map[string]node

// SetNode adds or replaces a node: what an envelope pays for on it may be out of its reach from then on.
func (a *Accounts) SetNode(name, flavor string, labels map[string]string) {
	a.nodes[name] = node{flavor, labels}
	a.fresh.none()
}

// DeleteNode forgets a node. What is charged there is not known to be out of anybody's reach any more.
func (a *Accounts) DeleteNode(name string) {
	delete(a.nodes, name)
	a.fresh.none()
}

// covered reports whether a charge is for GPUs of an envelope's flavor on a node that its selector matches (R3), as far
// as that is known. A Lease that does not record its flavor has that of its node.
func (n nodes) covered(e envelope, c *Charge) bool {
	on, known := n[c.Node]
	flavor := c.Flavor
	if flavor == "" {
		flavor = on.flavor
	}
	return (flavor == "" || flavor == e.Flavor) && (!known || len(e.Selector) == 0 || matches(e.Selector, on.labels))
}

// coveredAll reports whether that holds for all live charges of an account that may become overdraft.
func (n nodes) coveredAll(e envelope, at *account) bool {
	if len(e.Selector) == 0 && len(at.flavors) <= 1 && (len(at.flavors) == 0 || at.flavors[e.Flavor] > 0) {
		return true
	}
	for _, c := range at.live {
		if useOf(c.Role) != useOpportunistic && !n.covered(e, &c) {
			return false
		}
	}
	return true
}
