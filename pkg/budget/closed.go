package budget

import (
	"iter"
	"strings"
)

// closedLeases are the closed Leases of an account that are not settled, by namespace and by name: those of a namespace
// go together, and are found without a look at the others.
type closedLeases map[string]map[string]pastCharge

func namespaceOf(lease string) string {
	namespace, _, _ := strings.Cut(lease, "/")
	return namespace
}

func (c closedLeases) of(lease string) (pastCharge, bool) {
	p, closed := c[namespaceOf(lease)][lease]
	return p, closed
}

func (c closedLeases) set(lease string, p pastCharge) {
	namespace := namespaceOf(lease)
	if c[namespace] == nil {
		c[namespace] = map[string]pastCharge{}
	}
	c[namespace][lease] = p
}

func (c closedLeases) remove(lease string) {
	namespace := namespaceOf(lease)
	if delete(c[namespace], lease); len(c[namespace]) == 0 {
		delete(c, namespace)
	}
}

// count is how many there are.
func (c closedLeases) count() (n int) {
	for _, leases := range c {
		n += len(leases)
	}
	return n
}

// all goes through all of them, in any order.
func (c closedLeases) all() iter.Seq2[string, pastCharge] {
	return func(yield func(string, pastCharge) bool) {
		for _, leases := range c {
			for lease, p := range leases {
				if !yield(lease, p) {
					return
				}
			}
		}
	}
}
