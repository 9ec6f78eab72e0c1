package picture

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Objects are what a picture is drawn from. What may not be read is left out, and the picture lacks it.
type Objects struct {
	Nodes        []*corev1.Node
	Runs         []*rqv1.Run
	Leases       []*rqv1.Lease
	Reservations []*rqv1.Reservation
	Budgets      []*rqv1.Budget
	// Pods are looked at for those of other schedulers, and for those that are leaving. They tell of the present alone.
	Pods []*corev1.Pod
}

// Use is what one GPU is used for.
type Use string

// The uses of a GPU, in the order in which a node's are drawn.
const (
	// Active GPUs are held by a rank of a Run.
	Active Use = "active"
	// Spare GPUs stand by for a Run; a shard of an opportunistic Run may use one meanwhile.
	Spare Use = "spare"
	// Shard GPUs are used by an opportunistic Run, and held by nobody.
	Shard Use = "shard"
	// Leaving GPUs are still used by a pod whose GPU lease is closed.
	Leaving Use = "leaving"
	// Foreign GPUs are used by pods that jobtree has not placed.
	Foreign Use = "foreign"
	// Free GPUs are used by nobody.
	Free Use = "free"
	// Broken GPUs are in the node and cannot be allocated.
	Broken Use = "broken"
)

// Span is a number of GPUs of one node that are used alike.
type Span struct {
	Use Use `json:"use"`
	// Run is who holds them, as NAMESPACE/NAME, and Tenant the opportunistic Run that uses a spare's GPUs meanwhile.
	Run    string `json:"run,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	GPUs   int    `json:"gpus"`
}

// Node is one node with GPUs.
type Node struct {
	Name string `json:"name"`
	// Domain is the values of the fleet's levels, widest first; "" for a label that the node lacks.
	Domain  []string `json:"domain"`
	GPUType string   `json:"gpuType"`
	State   State    `json:"state"`
	// Why says what the state rests on, and Since when it began, where that is recorded.
	Why   string     `json:"why,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// LeftOut says why jobtree does not use the node at all: a label that it lacks.
	LeftOut string `json:"leftOut,omitempty"`
	// Spans are all of its GPUs, in order of use and then of Run.
	Spans []Span `json:"spans"`
	// For names the Reservations, as NAMESPACE/NAME, that intend to use the node.
	For []string `json:"for,omitempty"`
}

// GPUs returns how many GPUs of a node are used in one of some ways; of all GPUs when none is given.
func (n *Node) GPUs(uses ...Use) int {
	total := 0
	for i := range n.Spans {
		if len(uses) == 0 || slices.Contains(uses, n.Spans[i].Use) {
			total += n.Spans[i].GPUs
		}
	}
	return total
}

// FleetAt draws the fleet at an instant, its nodes ordered by domain and name. The nodes and their states are those of
// the present; who held what is from the GPU leases. Pods and Reservations count only when the instant is the present:
// what they were before is not known. In the present a GPU lease is open until it is closed, whatever the clock of
// this machine says of when it began.
func FleetAt(o *Objects, args *config.Args, at time.Time, present bool) []Node {
	held := heldOn(o, func(lease *rqv1.Lease) bool {
		return present && !lease.Status.Closed || !present && OpenAt(lease, at)
	})
	var reserved map[string][]string
	if present {
		addPods(held, o, args)
		reserved = intended(o.Reservations)
	}
	out := []Node{}
	for _, node := range o.Nodes {
		if args.GPUResource.Sum(node.Status.Capacity) == 0 && args.GPUResource.Sum(node.Status.Allocatable) == 0 {
			continue
		}
		n := nodeOf(node, args, at)
		n.Spans, n.For = spansOf(node, args, held[node.Name]), reserved[node.Name]
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Node) int {
		return cmp.Or(slices.Compare(a.Domain, b.Domain), strings.Compare(a.Name, b.Name))
	})
	return out
}

func nodeOf(node *corev1.Node, args *config.Args, now time.Time) Node {
	standing := StandingOf(node, now)
	n := Node{Name: node.Name, State: standing.State,
		Why: strings.TrimSpace(standing.Reason + " " + standing.Message)}
	if !standing.Since.IsZero() {
		n.Since = &standing.Since
	}
	if value := node.Labels[args.FlavorLabel]; value != "" {
		n.GPUType = args.FlavorOf(value)
	} else {
		n.LeftOut = "it has no label " + args.FlavorLabel
	}
	for _, level := range Levels(args) {
		value := node.Labels[level]
		if value == "" && n.LeftOut == "" {
			n.LeftOut = "it has no label " + level
		}
		n.Domain = append(n.Domain, value)
	}
	return n
}

// Levels are the node labels that name a domain, widest first, down to the fast fabric.
func Levels(args *config.Args) []string {
	return args.TopologyLevels[:slices.Index(args.TopologyLevels, args.FabricLevel)+1]
}

// use is what holds some GPUs of a node.
type use struct {
	use  Use
	run  string
	gpus int
}

// heldOn returns what the GPU leases hold that are open, by node.
func heldOn(o *Objects, open func(*rqv1.Lease) bool) map[string][]use {
	out := map[string][]use{}
	for _, lease := range o.Leases {
		if !open(lease) {
			continue
		}
		by := Active
		switch lease.Spec.Slice.Role {
		case rqv1.RoleSpare:
			by = Spare
		case rqv1.RoleBorrowed:
			by = Shard
		}
		for _, slice := range lease.Spec.Slice.Nodes {
			out[slice.Name] = append(out[slice.Name], use{by, runOf(lease), int(slice.GPUs)})
		}
	}
	return out
}

// OpenAt reports whether a GPU lease was open at an instant.
func OpenAt(lease *rqv1.Lease, at time.Time) bool {
	if at.Before(lease.Spec.Start.Time) {
		return false
	}
	return !lease.Status.Closed || lease.Status.Ended != nil && at.Before(lease.Status.Ended.Time)
}

func runOf(lease *rqv1.Lease) string {
	return lease.Spec.RunRef.Namespace + "/" + lease.Spec.RunRef.Name
}

// intended returns the Reservations that intend to use a node, by node, in order of name.
func intended(reservations []*rqv1.Reservation) map[string][]string {
	out := map[string][]string{}
	for _, r := range reservations {
		if r.Ended() || r.Spec.IntendedSlice == nil {
			continue
		}
		for _, node := range r.Spec.IntendedSlice.Nodes {
			out[node] = append(out[node], r.Namespace+"/"+r.Name)
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

// leased returns the pods that an open GPU lease is held by.
func leased(leases []*rqv1.Lease) map[types.UID]bool {
	out := make(map[types.UID]bool, len(leases))
	for _, lease := range leases {
		if !lease.Status.Closed {
			out[lease.PodUID()] = true
		}
	}
	return out
}
