package dashboard

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/picture"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// What has ended is shown for an hour, and of that the last rows only.
const (
	shownAfterEnd = time.Hour
	mostEnded     = 200
)

// runRow is one Run.
type runRow struct {
	Key       string     `json:"key"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"` // what people call it
	Owner     rqv1.Owner `json:"owner"`
	GPUType   string     `json:"gpuType,omitempty"`
	Phase     string     `json:"phase"`
	Message   string     `json:"message,omitempty"`
	Allocated int32      `json:"allocated"`
	Desired   int32      `json:"desired"`
	Spares    int32      `json:"spares,omitempty"`
	Priority  *int32     `json:"priority,omitempty"`

	Created  time.Time  `json:"created"`
	Started  *time.Time `json:"started,omitempty"`
	Ends     *time.Time `json:"ends,omitempty"` // by its maxDuration
	Finished *time.Time `json:"finished,omitempty"`

	Borrowed int32 `json:"borrowed,omitempty"`
	// Risks are those that the Run's status lists, the gravest first, and MoreRisks how many more there are.
	Risks     []rqv1.RunRisk   `json:"risks,omitempty"`
	MoreRisks int              `json:"moreRisks,omitempty"`
	Waits     *view.Waiting    `json:"waits,omitempty"`
	Change    []possibleChange `json:"changes,omitempty"`
}

// possibleChange is one change that would make a Run start, or would have somebody pay for it.
type possibleChange struct {
	What string `json:"what"`
	GPUs int32  `json:"gpus"`
}

// runsNow returns the Runs that have not ended, and those that ended last.
func runsNow(o *picture.Objects, now time.Time) []*runRow {
	var rows, ended []*runRow
	for _, run := range o.Runs {
		if run.WhatIf() {
			continue
		}
		r := rowOfRun(run, now)
		switch {
		case !run.Ended():
			rows = append(rows, r)
		case r.Finished != nil && now.Sub(*r.Finished) < shownAfterEnd:
			ended = append(ended, r)
		}
	}
	slices.SortFunc(ended, func(a, b *runRow) int {
		return cmp.Or(b.Finished.Compare(*a.Finished), cmp.Compare(a.Key, b.Key))
	})
	return append(rows, ended[:min(len(ended), mostEnded)]...)
}

func rowOfRun(run *rqv1.Run, now time.Time) *runRow {
	r := &runRow{Key: run.Namespace + "/" + run.Name, Namespace: run.Namespace, Name: session.NameOf(run),
		Owner: run.Spec.Owner, GPUType: run.Spec.Resources.GPUType, Phase: string(view.PhaseOf(run)),
		Message: run.Status.Message, Desired: run.Spec.Resources.TotalGPUs, Spares: view.SparesWanted(run),
		Priority: run.Status.Priority, Created: run.CreationTimestamp.Time, Risks: slices.Clone(run.Status.AtRisk),
		MoreRisks: view.MoreRisks(run)}
	slices.SortStableFunc(r.Risks, func(a, b rqv1.RunRisk) int { return risk.Compare(&a, &b) })
	if run.Suspended() {
		r.Phase = view.Suspended
	}
	if w := run.Status.Width; w != nil {
		r.Allocated, r.Desired = w.Allocated, w.Desired
	}
	if f := run.Status.Funding; f != nil {
		r.Borrowed = f.BorrowedGPUs
	}
	r.Started, r.Ends, r.Finished = known(run.StartedAt()), known(run.EndsAt()), known(run.FinishedAt())
	r.Waits = view.WaitOf(run, now)
	if r.Waits != nil {
		r.Waits.CountdownSeconds = nil // the page counts by itself
		if refusal := run.Status.Refusal; refusal != nil {
			for _, c := range refusal.Changes {
				r.Change = append(r.Change, possibleChange{c.What, c.GPUs})
			}
		}
	}
	return r
}

// known is an instant, or nil.
func known(at time.Time, ok bool) *time.Time {
	if !ok {
		return nil
	}
	return &at
}

// runsThen returns the Runs that held GPUs at an instant of the past, as GPU leases tell of them.
func runsThen(o *picture.Objects, at time.Time) []*runRow {
	rows := map[string]*runRow{}
	for _, lease := range o.Leases {
		if !picture.OpenAt(lease, at) {
			continue
		}
		key := lease.Spec.RunRef.Namespace + "/" + lease.Spec.RunRef.Name
		r := rows[key]
		if r == nil {
			r = &runRow{Key: key, Namespace: lease.Spec.RunRef.Namespace, Name: lease.Spec.RunRef.Name,
				Owner: lease.Spec.Owner, GPUType: lease.Spec.Flavor, Phase: string(rqv1.RunRunning)}
			rows[key] = r
		}
		if lease.Spec.Slice.Role == rqv1.RoleSpare {
			r.Spares += lease.GPUs()
			continue
		}
		r.Allocated += lease.GPUs()
		r.Desired = r.Allocated
	}
	out := make([]*runRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, r)
	}
	return out
}

// reservationRow is one Reservation.
type reservationRow struct {
	Key           string                `json:"key"`
	Run           string                `json:"run"`
	State         rqv1.ReservationState `json:"state"`
	Reason        string                `json:"reason,omitempty"`
	EarliestStart metav1.Time           `json:"earliestStart"`
	Domain        map[string]string     `json:"domain,omitempty"`
	Nodes         []string              `json:"nodes,omitempty"`
	Payers        []rqv1.PayingEnvelope `json:"payers,omitempty"`
	Forecast      *rqv1.Forecast        `json:"forecast,omitempty"`
	Conflicts     []rqv1.Conflict       `json:"conflicts,omitempty"`
	Total         *rqv1.ConflictTotal   `json:"total,omitempty"`
	Commitment    string                `json:"commitment,omitempty"`
	Drawn         int                   `json:"drawn,omitempty"`
	Revealed      bool                  `json:"revealed,omitempty"`
	Cuts          []rqv1.Cut            `json:"cuts,omitempty"`
	ActivatedAt   *metav1.MicroTime     `json:"activatedAt,omitempty"`
	EndedAt       *metav1.Time          `json:"endedAt,omitempty"`
}

// reservationsNow returns the Reservations that have not ended, and the last of those that have been drawn for.
func reservationsNow(o *picture.Objects) []*reservationRow {
	var rows, ended []*reservationRow
	for _, of := range o.Reservations {
		r := rowOfReservation(of)
		switch {
		case !of.Ended():
			rows = append(rows, r)
		case r.Revealed && r.EndedAt != nil:
			ended = append(ended, r)
		}
	}
	slices.SortFunc(ended, func(a, b *reservationRow) int {
		return cmp.Or(b.EndedAt.Compare(a.EndedAt.Time), cmp.Compare(a.Key, b.Key))
	})
	return append(rows, ended[:min(len(ended), mostEnded)]...)
}

func rowOfReservation(of *rqv1.Reservation) *reservationRow {
	r := &reservationRow{Key: of.Namespace + "/" + of.Name,
		Run: of.Spec.RunRef.Namespace + "/" + of.Spec.RunRef.Name, State: view.StateOf(of), Reason: of.Status.Reason,
		EarliestStart: of.Spec.EarliestStart, Payers: of.Spec.PayingEnvelopes, Forecast: of.Status.Forecast,
		Conflicts: of.Status.ConflictSet, Total: of.Status.Conflicts, Cuts: of.Status.Cuts,
		ActivatedAt: of.Status.ActivatedAt, EndedAt: of.Status.EndedAt}
	if slice := of.Spec.IntendedSlice; slice != nil {
		r.Domain, r.Nodes = slice.Domain, slice.Nodes
	}
	if l := of.Status.Lottery; l != nil {
		r.Commitment, r.Drawn, r.Revealed = l.Commitment, len(l.Draws), l.Nonce != ""
	}
	return r
}
