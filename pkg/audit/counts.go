package audit

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// The scheduler looks at Budgets every second and writes writesPerSecond of them at most: so long, and a while more,
// may a status not know a GPU lease yet.
const (
	writesPerSecond = 20
	lag             = 4 * time.Second
)

// counted notes what the Budgets say, and what of it need not be in GPU leases.
func (s *sight) counted() budgets {
	out := budgets{seen: map[string]*rqv1.Budget{}, promised: map[budget.Key]int{}, at: s.At, settled: s.Settled}
	for _, b := range s.Budgets {
		out.seen[b.Name] = b
	}
	if s.Settled {
		return out
	}
	promised := map[types.UID]bool{} // a Run with a date has no place before it
	for _, r := range s.Reservations {
		if !r.Ended() {
			promised[types.UID(r.Labels[rqv1.LabelRunUID])] = true
		}
		if r.Status.State != rqv1.ReservationActivating {
			continue
		}
		for _, e := range r.Spec.PayingEnvelopes {
			out.promised[budget.Key{Budget: e.Budget, Envelope: e.Envelope}] += int(e.GPUs)
		}
	}
	for _, run := range s.Runs {
		missing := s.missing(run)
		if run.Spec.Opportunistic {
			out.shards += missing
		} else if !promised[run.UID] || s.recent(run) {
			out.starting += missing
		}
	}
	return out
}

// missing returns the GPUs that a Run may have been given a place for and has no Leases of. One that has been refused
// has none.
func (s *sight) missing(run *rqv1.Run) int {
	wide := int(run.Spec.Resources.TotalGPUs)
	if m := run.Spec.Malleable; m != nil {
		wide = int(m.MaxTotalGPUs)
	}
	switch phase := run.Status.Phase; {
	case phase == rqv1.RunCompleted || phase == rqv1.RunFailed || phase != rqv1.RunRunning && refused(run) &&
		!s.recent(run) && !run.Spec.Opportunistic:
		return 0
	case phase == rqv1.RunRunning && run.Status.Width != nil && run.Status.Width.Granted > 0:
		wide = int(max(run.Status.Width.Granted, run.Status.Width.Growing))
	}
	for _, lease := range s.runLeases[run.UID] {
		if !s.outlived(lease) { // its rank may be elsewhere by now
			wide -= int(lease.GPUs())
		}
	}
	return max(0, wide+sparesOf(run, wide))
}

// sparesOf returns the most GPUs that may stand by for a Run of a width. Where it is not told yet what those of a group
// come to in whole pods, they may be as many as the group has (R14).
func sparesOf(run *rqv1.Run, wide int) int {
	group := int32(wide)
	if l := run.Spec.Locality; l != nil && l.GroupGPUs != nil {
		group = *l.GroupGPUs
	}
	each := run.GroupSpares()
	if each > 0 && run.Status.Phase != rqv1.RunRunning && run.Spec.Resources.GPUsPerPod == nil {
		each = group
	}
	return int(each) * (wide/max(1, int(group)) + 1)
}

// waits are the reasons of a Run that waits and has not been refused: it may be about to start.
var waits = []string{"Waiting", "Activating", "Requeued", "DeadlineExceeded", "PodsNotMade",
	string(rqv1.ClosedRandomPreempt), string(rqv1.ClosedPriorityPreempt), rqv1.ReasonTimedOut}

// recent reports whether a Run came to wait so short a time ago that it may still hold places which it had before: one
// that ran keeps its room for the gang's deadline from when the last of its pods is gone.
func (s *sight) recent(run *rqv1.Run) bool {
	started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	if started == nil {
		return false
	}
	kept := s.GangDeadline + late
	if started.LastTransitionTime.Sub(run.CreationTimestamp.Time) > writing {
		// it is not the first thing that was said of it
		kept += s.MaxGrace
	}
	return s.At.Sub(started.LastTransitionTime.Time) <= kept
}

func refused(run *rqv1.Run) bool {
	started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	if started == nil {
		return false
	}
	for _, reason := range waits {
		if started.Reason == reason {
			return false
		}
	}
	return true
}

// tally is what GPU leases hold of one envelope, in GPUs.
type tally struct{ owned, family, lent, spare, opportunistic, lending int }

func (t *tally) all() int { return t.owned + t.family + t.lent + t.spare }

func (t *tally) add(c *budget.Charge) {
	switch {
	case c.Role == rqv1.RoleBorrowed:
		t.opportunistic += c.GPUs
		return
	case c.Role == rqv1.RoleSpare:
		t.spare += c.GPUs
	case c.Relation == rqv1.RelationOwn:
		t.owned += c.GPUs
	case c.Relation == rqv1.RelationSponsor:
		t.lent += c.GPUs
	default:
		t.family += c.GPUs
	}
	if c.Relation == rqv1.RelationSponsor {
		t.lending += c.GPUs
	}
}

// String says what is held in words.
func (t *tally) String() string {
	var parts []string
	for _, part := range []struct {
		name string
		gpus int
	}{{"owned", t.owned}, {"family", t.family}, {"lent", t.lent}, {"spare", t.spare}, {"opportunistic", t.opportunistic}} {
		if part.gpus != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.gpus, part.name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// bounds are the least and the most that a status may count of one envelope.
type bounds struct{ least, most tally }

// miscounted finds envelopes whose status counts other GPUs than the Leases hold (I8), in both looks: fewer than the
// Leases that are open in both looks hold, or more than the Leases that are open in either look hold, with what is
// under way. Overdraft may be any part of it.
func miscounted(before, after *Look) []Finding {
	between := map[budget.Key]*bounds{}
	at := func(k budget.Key) *bounds {
		if between[k] == nil {
			between[k] = &bounds{}
		}
		return between[k]
	}
	for lease, c := range after.open {
		b := at(c.Payer)
		b.most.add(&c)
		if _, both := before.open[lease]; both && after.knows(&c) {
			b.least.add(&c)
		}
	}
	for lease, c := range before.open {
		if _, both := after.open[lease]; !both {
			at(c.Payer).most.add(&c)
		}
	}
	for _, l := range []*Look{before, after} {
		for _, b := range l.seen {
			for i := range b.Status.Envelopes {
				at(budget.Key{Budget: b.Name, Envelope: b.Status.Envelopes[i].Name})
			}
		}
	}
	var out []Finding
	for k, b := range between {
		if before.seen[k.Budget] == nil || after.seen[k.Budget] == nil || before.right(k, b) || after.right(k, b) {
			continue
		}
		said := after.said(k)
		counted := tally{int(said.OwnedGPUs), int(said.FamilyGPUs), int(said.LentGPUs), int(said.SpareGPUs),
			int(said.OpportunisticGPUs), int(said.LendingGPUs)}
		out = append(out, newFinding(Violation, "I8", k.Envelope, []Object{object("Budget", after.seen[k.Budget])},
			"the status of Budget %s counts of envelope %s %s and %d overdraft, and its open GPU leases hold %s",
			k.Budget, k.Envelope, &counted, said.OverdraftGPUs, &b.most))
	}
	return out
}

// knows reports whether the status of the payer's Budget must know a charge by now.
func (b *budgets) knows(c *budget.Charge) bool {
	return b.settled || b.late(c.Start)
}

// late reports whether by now a status should have been written of what is so since an instant.
func (b *budgets) late(since time.Time) bool {
	return b.at.Sub(since) > lag+time.Duration(len(b.seen)/writesPerSecond)*time.Second
}

// fresh reports whether a Budget's status was written so short a time ago that it may count GPU leases which began and
// ended between two looks.
func (b *budgets) fresh(k budget.Key) bool {
	observed := b.seen[k.Budget].Status.ObservedAt
	return !b.settled && observed != nil && !b.late(observed.Time)
}

// said returns what a status says of an envelope; nothing when it does not.
func (b *budgets) said(k budget.Key) *rqv1.EnvelopeStatus {
	for i := range b.seen[k.Budget].Status.Envelopes {
		if e := &b.seen[k.Budget].Status.Envelopes[i]; e.Name == k.Envelope {
			return e
		}
	}
	return &rqv1.EnvelopeStatus{Name: k.Envelope}
}

// right reports whether what a look's status says of an envelope is within bounds.
func (b *budgets) right(k budget.Key, between *bounds) bool {
	e, least := b.said(k), &between.least
	return least.all() <= int(holds(e)) && least.lending <= int(e.LendingGPUs) &&
		least.opportunistic <= int(e.OpportunisticGPUs) && (b.fresh(k) || b.within(k, &between.most))
}

// within reports whether a look's status counts no more of an envelope than the most that there may be.
func (b *budgets) within(k budget.Key, most *tally) bool {
	e, soon := b.said(k), b.promised[k]+b.starting
	return int(e.OwnedGPUs) <= most.owned+soon && int(e.FamilyGPUs) <= most.family+soon &&
		int(e.LentGPUs) <= most.lent+soon && int(e.SpareGPUs) <= most.spare+soon &&
		int(holds(e)) <= most.all()+soon && int(e.LendingGPUs) <= most.lending+soon &&
		int(e.OpportunisticGPUs) <= most.opportunistic+b.shards
}
