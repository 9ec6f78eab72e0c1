package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Amount is so much of one resource: CPU in thousandths, everything else in its own unit.
type Amount struct {
	Resource string
	N        int64
}

// Amounts are what a pod asks for of its node beside GPUs, or what a node has for all pods. They are never changed, so
// that many may share them; nil is nothing.
type Amounts struct{ of []Amount }

// NewAmounts returns amounts by resource, without those of nothing; nil when none is left.
func NewAmounts(of map[string]int64) *Amounts {
	a := &Amounts{}
	for resource, n := range of {
		if n != 0 {
			a.of = append(a.of, Amount{resource, n})
		}
	}
	if len(a.of) == 0 {
		return nil
	}
	slices.SortFunc(a.of, func(x, y Amount) int { return cmp.Compare(x.Resource, y.Resource) })
	return a
}

// All lists the amounts by name of their resources.
func (a *Amounts) All() []Amount {
	if a == nil {
		return nil
	}
	return a.of
}

// Times returns the amounts of several pods.
func (a *Amounts) Times(pods int) *Amounts {
	if a == nil || pods == 1 {
		return a
	}
	of := map[string]int64{}
	for _, x := range a.of {
		of[x.Resource] = x.N * int64(pods)
	}
	return NewAmounts(of)
}

// Equal reports whether two are the same amounts.
func (a *Amounts) Equal(o *Amounts) bool { return a == o || slices.Equal(a.All(), o.All()) }

// Port is the resource that a port of a node is: every node has one of each.
func Port(protocol string, port int32) string {
	return fmt.Sprintf("%s%s/%d", portPrefix, protocol, port)
}

const portPrefix = "port/"

// everywhere is how much of a resource every node has that does not say so.
func everywhere(resource string) int64 {
	if IsPort(resource) {
		return 1
	}
	return 0
}

// ask is an amount by the number that the fleet gives its resource.
type ask struct {
	resource int
	n        int64
}

// number returns the number of a resource.
func (f *Fleet) number(resource string) int {
	i, known := f.resources[resource]
	if !known {
		i = len(f.everywhere)
		f.resources[resource] = i
		f.everywhere = append(f.everywhere, everywhere(resource))
	}
	return i
}

func (f *Fleet) numbered(a *Amounts) []ask {
	if a == nil {
		return nil
	}
	out := make([]ask, len(a.of))
	for i, x := range a.of {
		out[i] = ask{f.number(x.Resource), x.N}
	}
	return out
}

// vector returns amounts by the numbers of their resources; nil where they are not known.
func (f *Fleet) vector(a *Amounts) []int64 {
	if a == nil {
		return nil
	}
	var out []int64
	for _, x := range f.numbered(a) {
		for len(out) <= x.resource {
			out = append(out, 0)
		}
		out[x.resource] = x.n
	}
	return out
}

// Burden notes that so many pods more hold some amounts of a node, fewer where by is negative. The node need not be
// known yet.
func (f *Fleet) Burden(name string, beside *Amounts, by int) {
	if beside == nil || by == 0 {
		return
	}
	n := f.node(name)
	for _, x := range beside.of {
		i := f.number(x.Resource)
		for len(n.burden) <= i {
			n.burden = append(n.burden, 0)
		}
		n.burden[i] += x.N * int64(by)
	}
	n.burdens += by
	f.drop(n)
}

// Lacks returns the first resource beside GPUs of which a node has less left than so many pods ask for; "" when there
// is none, or nothing is known of the node.
func (f *Fleet) Lacks(name string, beside *Amounts, pods int) string {
	n := f.nodes[name]
	if n == nil || n.has == nil {
		return ""
	}
	for _, x := range beside.All() {
		if f.left(n, f.number(x.Resource)) < x.N*int64(pods) {
			return x.Resource
		}
	}
	return ""
}

// left returns how much of a resource nobody holds of a node.
func (f *Fleet) left(n *node, resource int) int64 {
	left := f.everywhere[resource]
	if resource < len(n.has) {
		left += n.has[resource]
	}
	if resource < len(n.burden) {
		left -= n.burden[resource]
	}
	return left
}

// roomBeside returns how many pods, up to most, find what they ask for of a node beside GPUs.
func (f *Fleet) roomBeside(n *node, asks []ask, most int) int {
	if n.has == nil {
		return most // nothing is known of it
	}
	for _, a := range asks {
		if most == 0 {
			break // a pod may ask for thousands of resources that no node has
		}
		most = min(most, max(0, int(f.left(n, a.resource)/a.n)))
	}
	return most
}

// RoomBeside returns how many pods, up to most, find what they ask for of a node beside GPUs.
func (f *Fleet) RoomBeside(name string, beside *Amounts, most int) int {
	if n := f.nodes[name]; n != nil {
		return f.roomBeside(n, f.numbered(beside), most)
	}
	return most
}

// IsPort reports whether a resource is a port of the node.
func IsPort(resource string) bool { return strings.HasPrefix(resource, portPrefix) }
