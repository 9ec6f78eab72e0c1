package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// tracker follows the GPU leases of the Runs of one name: which are open, and what has befallen them since it was last told.
type tracker struct {
	held map[types.UID]*rqv1.Lease
	news []*rqv1.Lease
	// lost are GPU leases that were closed because their nodes were lost, and whose ranks have not moved yet.
	lost []*rqv1.Lease
}

// hold takes note of an open GPU lease, and forget of one that is no longer, without telling of it.
func (t *tracker) hold(lease *rqv1.Lease) {
	if t.held == nil {
		t.held = map[types.UID]*rqv1.Lease{}
	}
	t.held[lease.UID] = lease
}

func (t *tracker) forget(lease *rqv1.Lease) { delete(t.held, lease.UID) }

// saw takes note of a GPU lease as it is now, to tell of it if it has opened or closed.
func (t *tracker) saw(lease *rqv1.Lease) {
	if held := t.held[lease.UID] != nil; held != lease.Status.Closed {
		return
	}
	t.news = append(t.news, lease)
	if lease.Status.Closed {
		t.forget(lease)
	} else {
		t.hold(lease)
	}
}

// take returns what is to be told, in the order in which it was seen: what is alike together, or each GPU lease apart.
func (t *tracker) take(each bool) []happening {
	news, before := t.news, map[types.UID]*rqv1.Lease{}
	t.news = nil
	for _, lease := range news {
		if isLost(lease) {
			t.lost = append(t.lost, lease)
		}
	}
	for _, lease := range news {
		if moves(lease) {
			before[lease.UID] = t.leftBehind(lease)
		}
	}
	t.lost = slices.DeleteFunc(t.lost, func(l *rqv1.Lease) bool { return t.heldFor(l) != nil }) // closed after the move
	var told []happening
	for _, lease := range news {
		h := happened(lease)
		if moves(lease) {
			h.moved(before[lease.UID])
		} else if isLost(lease) && slices.ContainsFunc(news, func(l *rqv1.Lease) bool { return before[l.UID] == lease }) {
			continue // told with the move
		}
		if each {
			told = append(told, h)
		} else {
			told = join(told, h)
		}
	}
	for i := range told {
		slices.Sort(told[i].Groups)
		slices.Sort(told[i].Indexes)
		if told[i].Verb != hasMoved { // from and to stay side by side
			slices.Sort(told[i].Nodes)
		}
		told[i].What = told[i].inWords()
	}
	return told
}

// isLost is true of an active GPU lease whose node was lost.
func isLost(lease *rqv1.Lease) bool {
	return lease.Status.ClosureReason == rqv1.ClosedNodeFailure && lease.Spec.Slice.Role == rqv1.RoleActive
}

// moves is true of a GPU lease by which a rank comes to another node.
func moves(lease *rqv1.Lease) bool {
	return lease.Spec.Reason == rqv1.ReasonSwap && !lease.Status.Closed
}

// moved makes an opening a move from the node of the rank's GPU lease before, where that is known.
func (h *happening) moved(before *rqv1.Lease) {
	h.Verb = hasMoved
	if before == nil {
		return
	}
	h.After = before.Status.ClosureReason
	h.From = []string{before.Node()}
}

// leftBehind is the GPU lease that a rank had before it moved: one whose node was lost, or one that is still to be closed.
func (t *tracker) leftBehind(lease *rqv1.Lease) *rqv1.Lease {
	i := slices.IndexFunc(t.lost, func(l *rqv1.Lease) bool { return sameRank(l, lease) })
	if i < 0 {
		return t.heldFor(lease)
	}
	before := t.lost[i]
	t.lost = slices.Delete(t.lost, i, i+1)
	return before
}

// heldFor is another open GPU lease of the same rank, the oldest one; nil if there is none.
func (t *tracker) heldFor(lease *rqv1.Lease) *rqv1.Lease {
	var other *rqv1.Lease
	for _, l := range t.held {
		if sameRank(l, lease) && (other == nil || l.Spec.Start.Before(&other.Spec.Start)) {
			other = l
		}
	}
	return other
}

// sameRank is true of two GPU leases that one active pod of a Run and its replacement have.
func sameRank(a, b *rqv1.Lease) bool {
	return a.UID != b.UID && a.Spec.RunRef.UID == b.Spec.RunRef.UID && int32(a.Index()) == int32(b.Index()) &&
		a.Spec.Slice.Role == rqv1.RoleActive && b.Spec.Slice.Role == rqv1.RoleActive
}

// tally is how many GPU leases a Run has open, by role.
type tally struct {
	Active   int `json:"active"`
	Spare    int `json:"spare"`
	Borrowed int `json:"borrowed"`
}

// tally counts the open GPU leases of one Run.
func (t *tracker) tally(run types.UID) tally {
	var count tally
	for _, lease := range t.held {
		if lease.Spec.RunRef.UID != run {
			continue
		}
		switch lease.Spec.Slice.Role {
		case rqv1.RoleSpare:
			count.Spare++
		case rqv1.RoleBorrowed:
			count.Borrowed++
		default:
			count.Active++
		}
	}
	return count
}

// inWords lists the counts that can be something for a Run.
func (c tally) inWords(run *rqv1.Run) string {
	var parts []string
	for _, role := range []struct {
		count    int
		expected bool
		name     string
	}{
		{c.Active, !run.Spec.Opportunistic, "active"},
		{c.Spare, run.Spec.GroupSpares() > 0, "spare"},
		{c.Borrowed, run.Spec.Opportunistic, "borrowed"},
	} {
		if role.count > 0 || role.expected {
			parts = append(parts, fmt.Sprintf("%d %s", role.count, role.name))
		}
	}
	return strings.Join(parts, ", ")
}
