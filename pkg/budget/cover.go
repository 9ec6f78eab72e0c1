package budget

import (
	"fmt"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Offer is what one envelope can do for a Run: how many of its pods it could pay for, or why it pays for none.
type Offer struct {
	Key   Key
	Owner rqv1.Owner
	// Concurrency is the envelope's cap and Used what is charged to it, in GPUs.
	Concurrency, Used int
	// Pods that the headroom covers, whole pods only (R1).
	Pods int
	// Refusal says why Pods is 0 although there may be headroom; empty when the envelope takes part.
	Refusal string
	// Opens is when the window opens, for an envelope that is refused because it has not yet.
	Opens time.Time

	selector map[string]string
}

// Headroom returns the GPUs that may still be taken.
func (o *Offer) Headroom() int { return max(0, o.Concurrency-o.Used) }

// Cover answers, for one Run at one instant, what can be paid for and by whom. It is a topology.Purse, so that pack never
// looks where nobody pays (R3). It is valid until the accounts change.
type Cover struct {
	Offers     []Offer
	gpusPerPod int
	classes    [][]int // offers that pay on nodes of the class, in order of R2
	flow       flow
}

// Cover returns what the owner's own envelopes offer for pods of gpusPerPod GPUs of a flavor.
func (a *Accounts) Cover(owner rqv1.Owner, flavor string, gpusPerPod int, now time.Time) *Cover {
	c := &Cover{gpusPerPod: gpusPerPod}
	for _, e := range a.ofOwner(owner, flavor) {
		o := Offer{Key: e.key, Owner: e.owner, Concurrency: int(e.Concurrency), Used: a.used[e.key], selector: e.Selector}
		switch reason := a.unenforced(e); {
		case reason != "":
			o.Refusal = reason
		case e.Start != nil && now.Before(e.Start.Time):
			o.Refusal = "its window opens at " + e.Start.UTC().Format(time.RFC3339)
			o.Opens = e.Start.Time
		case e.End != nil && !now.Before(e.End.Time):
			o.Refusal = "its window closed at " + e.End.UTC().Format(time.RFC3339)
		default:
			o.Pods = o.Headroom() / gpusPerPod
		}
		c.Offers = append(c.Offers, o)
	}
	return c
}

// unenforced names a limit on the envelope that cannot be kept: such an envelope pays for nothing, so that no limit is
// ever passed over in silence.
func (a *Accounts) unenforced(e envelope) string {
	if e.MaxGPUHours != nil {
		return "its maxGPUHours is not metered by this version"
	}
	for _, limit := range a.budgets[e.key.Budget].Spec.AggregateCaps {
		if slices.Contains(limit.Envelopes, e.Name) {
			return fmt.Sprintf("its aggregate cap %s is not enforced by this version", limit.Name)
		}
	}
	return ""
}

// Class returns the payer class of nodes with these labels: nodes of one class are paid for by the same envelopes. It
// returns -1 where nobody pays.
func (c *Cover) Class(labels map[string]string) int {
	var payers []int
	for i := range c.Offers {
		if c.Offers[i].Pods > 0 && matches(c.Offers[i].selector, labels) {
			payers = append(payers, i)
		}
	}
	if len(payers) == 0 {
		return -1
	}
	for class, known := range c.classes {
		if slices.Equal(known, payers) {
			return class
		}
	}
	c.classes = append(c.classes, payers)
	return len(c.classes) - 1
}

// matches reports whether labels carry everything that a selector asks for; `*` asks for any value.
func matches(selector, labels map[string]string) bool {
	for key, want := range selector {
		if got, ok := labels[key]; !ok || (want != "*" && got != want) {
			return false
		}
	}
	return true
}

// Covers reports whether the offers can pay for demand[class] pods on nodes of every class at once.
func (c *Cover) Covers(demand []int) bool {
	capacity := c.flow.capacities(len(c.Offers))
	for i := range c.Offers {
		capacity[i] = c.Offers[i].Pods
	}
	return c.flow.feasible(c.classes, demand, capacity)
}

// Payable returns how many GPUs the offers that take part could pay for, wherever their selectors allow.
func (c *Cover) Payable() int {
	total := 0
	for i := range c.Offers {
		total += c.Offers[i].Pods * c.gpusPerPod
	}
	return total
}

// Assign chooses the payer of every pod, given the class of each pod's node in order of group and pod: the first envelope
// in order that leaves the rest coverable (R2, R6). It returns nil if the pods cannot be covered.
func (c *Cover) Assign(classes []int) []Key {
	demand := make([]int, len(c.classes))
	for _, class := range classes {
		if class < 0 || class >= len(demand) {
			return nil
		}
		demand[class]++
	}
	if !c.Covers(demand) {
		return nil
	}
	left := make([]int, len(c.Offers))
	for i := range c.Offers {
		left[i] = c.Offers[i].Pods
	}
	payers := make([]Key, 0, len(classes))
	for first := 0; first < len(classes); {
		class := classes[first]
		run := 1
		for first+run < len(classes) && classes[first+run] == class {
			run++
		}
		payers = c.assignRun(payers, class, run, demand, left)
		first += run
	}
	return payers
}

// assignRun assigns a run of pods of one class, giving each envelope as many of them as leaves the rest coverable.
func (c *Cover) assignRun(payers []Key, class, run int, demand, left []int) []Key {
	capacity := make([]int, len(left))
	for _, offer := range c.classes[class] {
		// Giving more pods to one envelope leaves less to the others, so the most that works is found by halving.
		most, least := min(run, left[offer]), 0
		for least < most {
			try := (least + most + 1) / 2
			demand[class] -= try
			copy(capacity, left)
			capacity[offer] -= try
			if c.flow.feasible(c.classes, demand, capacity) {
				least = try
			} else {
				most = try - 1
			}
			demand[class] += try
		}
		demand[class] -= least
		left[offer] -= least
		run -= least
		for range least {
			payers = append(payers, c.Offers[offer].Key)
		}
	}
	return payers
}
