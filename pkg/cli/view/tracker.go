package view

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Tracker follows the GPU leases of the Runs of one name: which are open, and what has befallen them since it was
// last told.
type Tracker struct {
	Held map[types.UID]*rqv1.Lease
	news []*rqv1.Lease
	// lost are GPU leases that were closed because their nodes were lost, and whose ranks have not moved yet.
	lost []*rqv1.Lease
	// continued are those whose pods have others from then on, open or not yet closed.
	continued map[types.NamespacedName]bool
}

// Hold takes note of an open GPU lease, and forget of one that is no longer, without telling of it.
func (t *Tracker) Hold(lease *rqv1.Lease) {
	if t.Held == nil {
		t.Held, t.continued = map[types.UID]*rqv1.Lease{}, map[types.NamespacedName]bool{}
	}
	if r := lease.Spec.Repaid; r != nil {
		before := types.NamespacedName{Namespace: lease.Namespace, Name: r.Lease}
		t.continued[before] = true
		for _, held := range t.Held {
			if held.Key() == before {
				t.Forget(held)
			}
		}
	}
	if !t.continued[lease.Key()] {
		t.Held[lease.UID] = lease
	}
}

// Forget takes note that a GPU lease is no longer open, without telling of it.
func (t *Tracker) Forget(lease *rqv1.Lease) { delete(t.Held, lease.UID) }

// Saw takes note of a GPU lease as it is now, to tell of it if it has opened or closed.
func (t *Tracker) Saw(lease *rqv1.Lease) {
	if lease.Status.ClosureReason == rqv1.ClosedRepaid || t.continued[lease.Key()] { // told with the one that follows
		t.Forget(lease)
		return
	}
	if held := t.Held[lease.UID] != nil; held != lease.Status.Closed {
		return
	}
	t.news = append(t.news, lease)
	if lease.Status.Closed {
		t.Forget(lease)
	} else {
		t.Hold(lease)
	}
}

// Take returns what is to be told, in the order in which it was seen: what is alike together, or each GPU lease
// apart.
func (t *Tracker) Take(each bool) []Happening {
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
	var told []Happening
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
func (h *Happening) moved(before *rqv1.Lease) {
	h.Verb = hasMoved
	if before == nil {
		return
	}
	h.After = before.Status.ClosureReason
	h.From = []string{before.Node()}
}

// leftBehind is the GPU lease that a rank had before it moved: one whose node was lost, or one that is still to be
// closed.
func (t *Tracker) leftBehind(lease *rqv1.Lease) *rqv1.Lease {
	i := slices.IndexFunc(t.lost, func(l *rqv1.Lease) bool { return sameRank(l, lease) })
	if i < 0 {
		return t.heldFor(lease)
	}
	before := t.lost[i]
	t.lost = slices.Delete(t.lost, i, i+1)
	return before
}

// heldFor is another open GPU lease of the same rank, the oldest one; nil if there is none.
func (t *Tracker) heldFor(lease *rqv1.Lease) *rqv1.Lease {
	var other *rqv1.Lease
	for _, l := range t.Held {
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

// Tally is how many GPU leases a Run has open, by role.
type Tally struct {
	Active   int `json:"active"`
	Spare    int `json:"spare"`
	Borrowed int `json:"borrowed"`
}

// Tally counts the open GPU leases of one Run.
func (t *Tracker) Tally(run types.UID) Tally {
	var count Tally
	for _, lease := range t.Held {
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

// Matches reports whether the open GPU leases are those of a Run's width, and of all the spares that it is to have.
func (t *Tracker) Matches(run *rqv1.Run) bool {
	works, standsBy := int32(0), int32(0)
	for _, lease := range t.Held {
		switch {
		case lease.Spec.RunRef.UID != run.UID:
		case lease.Spec.Slice.Role == rqv1.RoleSpare:
			standsBy += lease.GPUs()
		default:
			works += lease.GPUs()
		}
	}
	w := run.Status.Width
	return w != nil && works == w.Allocated && standsBy == SparesWanted(run)
}

// InWords lists the counts that can be something for a Run.
func (c Tally) InWords(run *rqv1.Run) string {
	var parts []string
	for _, role := range []struct {
		count    int
		expected bool
		name     string
	}{
		{c.Active, !run.Spec.Opportunistic, "active"},
		{c.Spare, run.Spec.GroupSpares() > 0, "spare"},
		{c.Borrowed, run.Spec.Opportunistic, "opportunistic"},
	} {
		if role.count > 0 || role.expected {
			parts = append(parts, fmt.Sprintf("%d %s", role.count, role.name))
		}
	}
	return strings.Join(parts, ", ")
}
