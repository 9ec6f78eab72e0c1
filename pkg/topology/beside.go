package topology

import (
	"cmp"
	"fmt"
	"maps"
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

// Plus returns the amounts of both.
func (a *Amounts) Plus(b *Amounts) *Amounts {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	of := map[string]int64{}
	for _, amounts := range []*Amounts{a, b} {
		for _, x := range amounts.All() {
			of[x.Resource] += x.N
		}
	}
	return NewAmounts(of)
}

// Equal reports whether two are the same amounts.
func (a *Amounts) Equal(o *Amounts) bool { return a == o || slices.Equal(a.All(), o.All()) }

// Port is the resource that a port of a node is. Every node has AllOfAPort of each, for whoever asks for it on all
// addresses.
func Port(protocol string, port int32) string {
	return fmt.Sprintf("%s%s/%d", portPrefix, protocol, port)
}

// PortAt is the resource that a port is on one of a node's addresses: there is one of each. Whoever asks for it asks
// for one of Port as well.
func PortAt(protocol string, port int32, address string) string {
	return Port(protocol, port) + atPrefix + address
}

const (
	portPrefix, atPrefix = "port/", "@"

	// AllOfAPort is as much as no number of addresses amounts to.
	AllOfAPort = 1 << 20
)

// everywhere is how much of a resource every node has that does not say so.
func everywhere(resource string) int64 {
	switch {
	case !IsPort(resource):
		return 0
	case strings.Contains(resource, atPrefix):
		return 1
	}
	return AllOfAPort
}

// ask is an amount by the number that the fleet gives its resource, if it knows that, and how much of that every node
// has that does not say so.
type ask struct {
	resource      int
	n, everywhere int64
}

// unknown is the number of a resource that no node has and nobody holds.
const unknown = -1

// number returns the number of a resource, which is known from now on.
func (f *Fleet) number(resource string) int {
	i, known := f.resources[resource]
	if !known {
		i = len(f.resources)
		f.resources[resource] = i
	}
	return i
}

// askFor returns an amount as the fleet numbers it.
func (f *Fleet) askFor(x Amount) ask {
	i, known := f.resources[x.Resource]
	if !known {
		i = unknown
	}
	return ask{i, x.N, everywhere(x.Resource)}
}

func (f *Fleet) numbered(a *Amounts) []ask {
	if a == nil {
		return nil
	}
	out := make([]ask, len(a.of))
	for i, x := range a.of {
		out[i] = f.askFor(x)
	}
	return out
}

// vector returns amounts by the numbers of their resources; nil where they are not known.
func (f *Fleet) vector(a *Amounts) []int64 {
	if a == nil {
		return nil
	}
	f.tidy()
	out := []int64{}
	for _, x := range a.of {
		out = grown(out, f.number(x.Resource))
		out[f.number(x.Resource)] = x.N
	}
	return out
}

// grown returns a vector that has a number.
func grown(v []int64, number int) []int64 {
	for len(v) <= number {
		v = append(v, 0)
	}
	return v
}

// tidy forgets the resources that no node has and nobody holds any more, once there may be many of them. What is known
// by number is not to be used after it.
func (f *Fleet) tidy() {
	if len(f.resources) < f.untidy {
		return
	}
	used := make([]bool, len(f.resources))
	for _, n := range f.nodes {
		for _, v := range [][]int64{n.has, n.burden} {
			for i, x := range v {
				used[i] = used[i] || x != 0
			}
		}
	}
	maps.DeleteFunc(f.resources, func(_ string, i int) bool { return !used[i] })
	numbers, next := make([]int, len(used)), 0
	for i := range used {
		numbers[i] = next
		if used[i] {
			next++
		}
	}
	for resource, i := range f.resources {
		f.resources[resource] = numbers[i]
	}
	for _, n := range f.nodes {
		for _, v := range []*[]int64{&n.has, &n.burden} {
			kept := make([]int64, 0, next)
			for i, x := range *v {
				if used[i] {
					kept = append(kept, x)
				}
			}
			if *v != nil {
				*v = kept
			}
		}
	}
	f.untidy = 2*len(f.resources) + 64
}

// Burden notes that so many pods more hold some amounts of a node, fewer where by is negative. The node need not be
// known yet.
func (f *Fleet) Burden(name string, beside *Amounts, by int) {
	if beside == nil || by == 0 {
		return
	}
	n := f.node(name)
	f.tidy()
	for _, x := range beside.of {
		i := f.number(x.Resource)
		n.burden = grown(n.burden, i)
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
		if n.left(f.askFor(x)) < x.N*int64(pods) {
			return x.Resource
		}
	}
	return ""
}

// left returns how much of a resource nobody holds of a node.
func (n *node) left(a ask) int64 {
	left := a.everywhere
	if a.resource == unknown {
		return left
	}
	if a.resource < len(n.has) {
		left += n.has[a.resource]
	}
	if a.resource < len(n.burden) {
		left -= n.burden[a.resource]
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
		most = min(most, max(0, int(n.left(a)/a.n)))
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
