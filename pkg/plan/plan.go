package plan

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Missing is a pod of a gang that has no node yet.
type Missing struct {
	Index int
	// Domain that the pod's group already lies in; empty when none of it is placed.
	Domain string
}

// Assignment is where a pod goes and who pays for it.
type Assignment struct {
	Index, Group int
	Node, Domain string
	Payer        budget.Key
}

// Gang plans all missing pods of a gang at once, given in order of index: it returns an assignment for each, in the same
// order, or a refusal. It changes nothing.
func Gang(fleet *topology.Fleet, accounts *budget.Accounts, d Demand, missing []Missing, excluded func(node string) bool, now time.Time) ([]Assignment, *Refusal) {
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
		out[i] = Assignment{Index: missing[i].Index, Group: slot.Group, Node: slot.Node, Domain: slot.Domain, Payer: payers[i]}
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

// groups gathers the missing pods by group, in order of index.
func groups(d Demand, missing []Missing) []topology.Group {
	var out []topology.Group
	for _, m := range missing {
		group := d.GroupOf(m.Index)
		if n := len(out); n > 0 && out[n-1].Index == group {
			out[n-1].Pods++
			continue
		}
		out = append(out, topology.Group{Index: group, Pods: 1, Domain: m.Domain})
	}
	return out
}
