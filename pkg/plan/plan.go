package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Missing is a pod of a gang that has no node yet.
type Missing struct {
	// Index of the pod among the Run's active pods, or among its spares.
	Index int
	Spare bool
	// Domain that the pod's group already lies in; empty when none of it is placed.
	Domain string
	// Beside are the nodes that active pods of the group are on already; for a spare.
	Beside []string
}

// Assignment is where a pod goes and who pays for it.
type Assignment struct {
	Index, Group int
	Spare        bool
	Node, Domain string
	Payer        budget.Key
}

// Gang plans all missing pods of a gang at once: it returns an assignment for each, or a refusal. Assignments come group by
// group, a group's active pods before its spares. It changes nothing.
func Gang(fleet *topology.Fleet, accounts *budget.Accounts, d Demand, missing []Missing, excluded func(node string) bool, now time.Time) ([]Assignment, *Refusal) {
	missing = byGroup(d, missing)
	cover := accounts.Cover(d.Owner, d.Flavor, d.GPUsPerPod, now)
	request := topology.Request{
		Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, Groups: groups(d, missing),
		Confined: d.Confined, OneDomain: d.OneDomain, Excluded: excluded, Purse: cover,
	}
	wanted := len(missing) * d.GPUsPerPod
	if payable := cover.Payable(); payable < wanted {
		return nil, unpayable(fleet, d, request, cover, wanted, payable)
	}
	placement, short := fleet.Pack(request)
	if short != nil {
		if short.Kind == topology.Unpayable {
			r := unpayable(fleet, d, request, cover, wanted, short.PlaceableGPUs)
			r.Elsewhere = true
			return nil, r
		}
		return nil, ofRoom(d, short)
	}
	classes := make([]int, len(placement.Slots))
	for i, slot := range placement.Slots {
		classes[i] = slot.Class
	}
	payers := cover.Assign(classes)
	out := make([]Assignment, len(placement.Slots))
	for i, slot := range placement.Slots {
		out[i] = Assignment{Index: missing[i].Index, Group: slot.Group, Spare: slot.Spare, Node: slot.Node, Domain: slot.Domain, Payer: payers[i]}
	}
	return out, nil
}

// unpayable says why nobody pays; unless the fleet could not hold the gang at any price, which is to be known first.
func unpayable(fleet *topology.Fleet, d Demand, r topology.Request, cover *budget.Cover, wanted, payable int) *Refusal {
	r.Purse = nil
	if _, short := fleet.Pack(r); short != nil && short.Kind != topology.NoRoom {
		return ofRoom(d, short)
	}
	return ofBudget(d, cover.Offers, wanted, payable)
}

// byGroup sorts missing pods by group, a group's active pods before its spares, and by index.
func byGroup(d Demand, missing []Missing) []Missing {
	role := func(m Missing) int {
		if m.Spare {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(missing), func(a, b Missing) int {
		return cmp.Or(cmp.Compare(d.groupOf(a), d.groupOf(b)), cmp.Compare(role(a), role(b)), cmp.Compare(a.Index, b.Index))
	})
}

func (d Demand) groupOf(m Missing) int {
	if m.Spare {
		return d.GroupOfSpare(m.Index)
	}
	return d.GroupOf(m.Index)
}

// groups gathers the missing pods, which are in order of group.
func groups(d Demand, missing []Missing) []topology.Group {
	var out []topology.Group
	for _, m := range missing {
		group := d.groupOf(m)
		if n := len(out); n == 0 || out[n-1].Index != group {
			out = append(out, topology.Group{Index: group, Domain: m.Domain})
		}
		if g := &out[len(out)-1]; m.Spare {
			g.Spares++
			g.Beside = m.Beside
		} else {
			g.Pods++
		}
	}
	return out
}
