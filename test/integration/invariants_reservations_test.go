package integration

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// runOf is the UID of the Run that a Reservation is for.
func runOf(r *rqv1.Reservation) types.UID { return types.UID(r.Labels[rqv1.LabelRunUID]) }

// misreserved finds Reservations that do not go with their Runs, or with themselves: of a Run, one at most has not
// ended, and none once it runs, ends or is gone (R17).
func (w *world) misreserved() []string {
	var out []string
	current := map[types.UID]string{}
	for i := range w.reservations {
		r := &w.reservations[i]
		say := func(format string, args ...any) {
			out = append(out, fmt.Sprintf("R17: Reservation %s (%s) ", r.Name, r.Status.State)+fmt.Sprintf(format, args...))
		}
		if r.Ended() != (r.Status.EndedAt != nil) {
			say("ended at %v", r.Status.EndedAt)
		}
		if !r.Ended() {
			if other := current[runOf(r)]; other != "" {
				say("and %s are for the same Run", other)
			}
			current[runOf(r)] = r.Name
			run, there := w.runs[r.Spec.RunRef.Name]
			if !there || run.UID != runOf(r) || run.Status.Phase != rqv1.RunPending {
				say("is for Run %s, which is %q", r.Spec.RunRef.Name, run.Status.Phase)
			}
		}
	}
	return out
}

// hurt finds Leases that closed as cut and are in no Reservation's cuts, and open ones that a Reservation has cut whose
// Run has started (R19).
func (w *world) hurt() []string {
	var out []string
	actions := map[rqv1.ClosureReason]rqv1.CutAction{rqv1.ClosedRandomPreempt: rqv1.CutLottery,
		rqv1.ClosedDropSpare: rqv1.CutDropSpare}
	for i := range w.leases {
		lease := &w.leases[i]
		action, cut := actions[lease.Status.ClosureReason]
		if cut && !slices.ContainsFunc(w.reservations, func(r rqv1.Reservation) bool { return takes(&r, lease, action) }) {
			out = append(out, fmt.Sprintf("R19: Lease %s is closed as %s, and nothing has cut it", lease.Name,
				lease.Status.ClosureReason))
		}
		if lease.Status.Closed {
			continue
		}
		for j := range w.reservations {
			if r := &w.reservations[j]; r.Status.State == rqv1.ReservationReleased && takes(r, lease, "") {
				out = append(out, fmt.Sprintf("R19: Lease %s is open, and Reservation %s has cut it", lease.Name, r.Name))
			}
		}
	}
	return out
}

// takes tells whether a Reservation's cuts, those of one action unless it is empty, take what a Lease holds.
func takes(r *rqv1.Reservation, lease *rqv1.Lease, action rqv1.CutAction) bool {
	index, _ := strconv.Atoi(lease.Labels[rqv1.LabelIndex])
	spare := lease.Spec.Slice.Role == rqv1.RoleSpare
	return slices.ContainsFunc(r.Status.Cuts, func(c rqv1.Cut) bool {
		if c.UID != lease.Spec.RunRef.UID || action != "" && c.Action != action ||
			!lease.Spec.Start.Before(r.Status.ActivatedAt) {
			return false
		}
		switch c.Action {
		case rqv1.CutDropSpare:
			return spare && slices.Contains(c.Spares, int32(index))
		case rqv1.CutShrink, rqv1.CutReturn:
			return !spare && int32(index+1)*lease.Spec.Slice.Nodes[0].GPUs > *c.Width
		}
		return true
	})
}

// feuds finds Runs that were cut by one that they had cut, before that one's shield was over (R22): a checkpoint
// interval from the activation, or what the tests' schedulers are configured with at the least.
func (w *world) feuds() []string {
	var out []string
	cut := map[[2]types.UID]*rqv1.Reservation{}
	byTime := slices.SortedFunc(slices.Values(w.reservations), func(x, y rqv1.Reservation) int {
		return activatedAt(&x).Compare(activatedAt(&y))
	})
	for i := range byTime {
		r := &byTime[i]
		for _, c := range r.Status.Cuts {
			if c.Action == rqv1.CutReturn {
				continue
			}
			cut[[2]types.UID{runOf(r), c.UID}] = r
			shield := time.Second
			if run, there := w.runs[c.Run.Name]; there && run.UID == c.UID && run.Spec.Runtime != nil &&
				run.Spec.Runtime.Checkpoint != nil {
				shield = run.Spec.Runtime.Checkpoint.Duration
			}
			other := cut[[2]types.UID{c.UID, runOf(r)}]
			if other != nil && activatedAt(r).Sub(activatedAt(other)) < shield {
				out = append(out, fmt.Sprintf("R22: Reservation %s cut Run %s, which had cut its Run by %s, %s after", r.Name,
					c.Run.Name, other.Name,
					activatedAt(r).Sub(activatedAt(other))))
			}
		}
	}
	return out
}

func activatedAt(r *rqv1.Reservation) time.Time {
	if r.Status.ActivatedAt == nil {
		return time.Time{}
	}
	return r.Status.ActivatedAt.Time
}

// altered lists what has changed of a Reservation's record that may not change any more (R21).
func altered(old, now *rqv1.ReservationStatus) string {
	var was, is rqv1.Lottery
	if old.Lottery != nil {
		was = *old.Lottery
	}
	if now.Lottery != nil {
		is = *now.Lottery
	}
	diff := ""
	check := func(fixed bool, was, is any) {
		if fixed {
			diff += cmp.Diff(was, is)
		}
	}
	check(was.Commitment != "", was.Commitment, is.Commitment)
	check(old.ActivatedAt != nil, old.ActivatedAt, now.ActivatedAt)
	check(old.ActivatedAt != nil, old.ConflictSet, now.ConflictSet)
	check(old.ActivatedAt != nil, was.ConflictSetDigest, is.ConflictSetDigest)
	check(was.Nonce != "", [3]any{was.Nonce, was.Draws, old.Cuts}, [3]any{is.Nonce, is.Draws, now.Cuts})
	check(old.EndedAt != nil, [2]any{old.State, old.EndedAt}, [2]any{now.State, now.EndedAt})
	return diff
}

// rewritten notes a Reservation as it was last seen, and what of its record changed when it may not.
func (l *ledger) rewritten(old, now *rqv1.Reservation) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.reservations[now.Namespace] == nil {
		l.reservations[now.Namespace] = map[types.UID]*rqv1.Reservation{}
	}
	l.reservations[now.Namespace][now.UID] = now
	if diff := altered(&old.Status, &now.Status); old.UID == now.UID && diff != "" {
		l.wrong = append(l.wrong, "R21: the record of Reservation "+now.Namespace+"/"+now.Name+" was changed:\n"+diff)
	}
}
