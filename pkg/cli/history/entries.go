package history

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// entry is one Run that holds GPUs or held some.
type entry struct {
	Namespace      string       `json:"namespace"`
	Run            string       `json:"run"`
	UID            types.UID    `json:"uid"`
	Owner          rqv1.Owner   `json:"owner"`
	State          string       `json:"state"`
	Started        metav1.Time  `json:"started"`
	Ended          *metav1.Time `json:"ended,omitempty"`
	ElapsedSeconds int64        `json:"elapsedSeconds"`
	// GPUs is the most that the Run had at a time, spares apart.
	GPUs int32 `json:"gpus"`
	// Attempts is how often the Run has started, as far as the ledger tells.
	Attempts int32       `json:"attempts"`
	GPUHours json.Number `json:"gpuHours"`
	Payers   []payer     `json:"payers"`
}

// payer is an envelope that is charged for a Run.
type payer struct {
	Budget   string      `json:"budget"`
	Envelope string      `json:"envelope"`
	Owner    rqv1.Owner  `json:"owner"`
	GPUHours json.Number `json:"gpuHours"`
	spend    budget.Spend
}

// entriesOf returns the Runs of some GPU leases, in the order in which they started. The Runs that still are there say
// how they stand.
func entriesOf(leases []rqv1.Lease, runs []rqv1.Run, now time.Time) ([]entry, error) {
	of, phases := map[types.UID][]*rqv1.Lease{}, map[types.UID]string{}
	for i := range leases {
		uid := leases[i].Spec.RunRef.UID
		of[uid] = append(of[uid], &leases[i])
	}
	for i := range runs {
		phases[runs[i].UID] = string(view.PhaseOf(&runs[i]))
	}
	entries := []entry{}
	for uid, held := range of {
		e, err := entryOf(held, now)
		if err != nil {
			return nil, err
		}
		if phase, there := phases[uid]; there {
			e.State = phase
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(a.Started.Compare(b.Started.Time), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Run, b.Run), strings.Compare(string(a.UID), string(b.UID)))
	})
	return entries, nil
}

// entryOf adds the GPU leases of one Run up, as of one that is deleted.
func entryOf(leases []*rqv1.Lease, now time.Time) (entry, error) {
	first := leases[0]
	used, err := view.UsageOf(leases, now)
	if err != nil {
		return entry{}, err
	}
	e := entry{Namespace: first.Spec.RunRef.Namespace, Run: first.Spec.RunRef.Name, UID: first.Spec.RunRef.UID,
		Owner: first.Spec.Owner, State: "Ending", Started: metav1.Time{Time: used.Started}, ElapsedSeconds: used.Seconds,
		GPUs: most(leases), GPUHours: view.Number(used.Spend)}
	if last := used.Last; last != nil {
		e.Ended, e.State = &metav1.Time{Time: last.Status.Ended.Time}, stateAfter(last.Status.ClosureReason)
	}
	for _, lease := range leases {
		charge, err := view.ChargeOf(lease, now)
		if err != nil {
			return entry{}, err
		}
		e.charge(&lease.Spec, charge.Spend)
		e.Attempts = max(e.Attempts, lease.Spec.Attempt+1)
	}
	for i := range e.Payers {
		e.Payers[i].GPUHours = view.Number(e.Payers[i].spend)
	}
	slices.SortFunc(e.Payers, func(a, b payer) int {
		return cmp.Or(cmp.Compare(b.spend, a.spend), strings.Compare(a.Budget, b.Budget),
			strings.Compare(a.Envelope, b.Envelope))
	})
	return e, nil
}

// charge adds to what an envelope is charged.
func (e *entry) charge(spec *rqv1.LeaseSpec, spend budget.Spend) {
	at := slices.IndexFunc(e.Payers, func(p payer) bool {
		return p.Budget == spec.Payer.Budget && p.Envelope == spec.PaidByEnvelope
	})
	if at < 0 {
		at = len(e.Payers)
		e.Payers = append(e.Payers, payer{Budget: spec.Payer.Budget, Envelope: spec.PaidByEnvelope, Owner: spec.Payer.Owner})
	}
	e.Payers[at].spend += spend
}

// stateAfter is the state of a Run that is gone, by why its last GPUs were given back.
func stateAfter(reason rqv1.ClosureReason) string {
	switch reason {
	case rqv1.ClosedDeleted, "":
		return "Canceled"
	case rqv1.ClosedCompleted:
		return string(rqv1.RunCompleted)
	case rqv1.ClosedFailed:
		return string(rqv1.RunFailed)
	}
	return string(reason)
}

// most is the most GPUs that were held at a time, spares apart. What ends at an instant is gone before what begins
// then.
func most(leases []*rqv1.Lease) int32 {
	type change struct {
		at   time.Time
		gpus int32
	}
	var changes []change
	for _, lease := range leases {
		if lease.Spec.Slice.Role == rqv1.RoleSpare {
			continue
		}
		changes = append(changes, change{lease.Spec.Start.Time, lease.GPUs()})
		if lease.Status.Ended != nil {
			changes = append(changes, change{lease.Status.Ended.Time, -lease.GPUs()})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.gpus, b.gpus)) })
	held, most := int32(0), int32(0)
	for _, c := range changes {
		held += c.gpus
		most = max(most, held)
	}
	return most
}
