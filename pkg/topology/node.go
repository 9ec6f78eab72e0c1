package topology

import (
	"fmt"
	"maps"
	"strings"

	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// MaxGPUsPerNode is the largest allocatable count that a node can have; a node that claims more is left out.
const MaxGPUsPerNode = 1024

// Node is what the packer knows of a node.
type Node struct {
	// Name identifies the node.
	Name string
	// Labels are the node's labels. The fleet keeps the map and expects that nobody changes it afterwards.
	Labels map[string]string
	// Flavor is the GPU type that the node carries.
	Flavor string
	// GPUs is the allocatable number of GPUs, 0 to MaxGPUsPerNode.
	GPUs int
	// Beside is what the node has for pods beside GPUs; nil when that is not known, and bounds nothing.
	Beside *Amounts
	// Unschedulable marks a cordoned node: it keeps what it holds and takes nothing new.
	Unschedulable bool
	// Outage is when the node is out of service by plan.
	Outage outage.Window
	// Unfit says why the node takes no part, whatever its labels are; empty where it may.
	Unfit string
}

func (n Node) equal(o Node) bool {
	return n.Name == o.Name && n.Flavor == o.Flavor && n.GPUs == o.GPUs &&
		n.Unschedulable == o.Unschedulable && n.Outage == o.Outage && n.Unfit == o.Unfit && n.Beside.Equal(o.Beside) &&
		maps.Equal(n.Labels, o.Labels)
}

// node is a Node in the fleet, or the GPUs held on a name whose Node has not been seen yet.
type node struct {
	Node
	known  bool
	reason string // why it is left out; "" when it is in a domain
	held   int
	// has and burden are what the node has beside GPUs and what pods hold of it, by number of the resource; has is nil
	// when that is not known. burdens is how many pods hold any.
	has, burden []int64
	burdens     int
	order       string        // sorts the nodes of a domain: the levels below the fabric level, then the name
	domain      *fabricDomain // nil when left out
	pool        *pool         // nil when left out or cordoned
}

func (n *node) free() int {
	return max(0, min(n.GPUs, n.GPUs-n.held))
}

// outOfService says why the node cannot be used, "" when it can.
func (f *Fleet) outOfService(n Node) string {
	switch {
	case n.Unfit != "":
		return n.Unfit
	case n.GPUs <= 0 && n.Flavor != "":
		return fmt.Sprintf("its GPU type is %q, but no GPU is allocatable", n.Flavor)
	case n.GPUs <= 0:
		return "no GPU is allocatable"
	case n.GPUs > MaxGPUsPerNode:
		return fmt.Sprintf("%d allocatable GPUs are more than the limit of %d", n.GPUs, MaxGPUsPerNode)
	case n.Flavor == "":
		return "the label of its GPU type is missing"
	}
	return f.Unplaced(n.Labels)
}

// Unplaced says which label a node lacks to have a place in the topology (R11); empty where it lacks none.
func (f *Fleet) Unplaced(labels map[string]string) string {
	for _, key := range f.levels {
		switch value, ok := labels[key]; {
		case !ok:
			return fmt.Sprintf("label %q is missing", key)
		case value == "":
			return fmt.Sprintf("label %q is empty", key)
		}
	}
	return ""
}

// place gives the node's values of the levels down to the fabric level, and what orders it in its domain.
func (f *Fleet) place(n Node) (values []string, order string) {
	values = make([]string, len(f.levels))
	for i, key := range f.levels {
		values[i] = n.Labels[key]
	}
	narrow := values[f.fabric+1:]
	return values[: f.fabric+1 : f.fabric+1], strings.Join(append(narrow[:len(narrow):len(narrow)], n.Name), "/")
}
