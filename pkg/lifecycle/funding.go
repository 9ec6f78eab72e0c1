package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// relationOverdraft marks GPUs that their payer allows no more, in place of what it is to the owner (R8).
const relationOverdraft = "overdraft"

// funding adds up who pays for the Run's open Leases. Whatever the owner's own envelopes do not pay for, or allow no more,
// is borrowed.
func (s *state) funding() *rqv1.RunFundingStatus {
	out := &rqv1.RunFundingStatus{}
	type other struct {
		owner    rqv1.Owner
		relation string
	}
	others := map[other]int32{}
	for _, lease := range s.Leases {
		pod := s.byUID[lease.PodUID()]
		if pod == nil || !holds(pod) {
			continue
		}
		over := min(int32(s.Overdraft(lease)), lease.GPUs())
		within := lease.GPUs() - over
		if over > 0 {
			others[other{lease.Spec.Payer.Owner, relationOverdraft}] += over
		}
		switch relation := lease.Relation(); {
		case within == 0:
		case relation == rqv1.RelationOwn:
			out.OwnedGPUs += within
		default:
			others[other{lease.Spec.Payer.Owner, string(relation)}] += within
		}
	}
	for who, gpus := range others {
		out.BorrowedGPUs += gpus
		out.Sponsors = append(out.Sponsors, rqv1.RunSponsor{Owner: who.owner, GPUs: gpus, Relation: who.relation})
	}
	slices.SortFunc(out.Sponsors, func(x, y rqv1.RunSponsor) int {
		return cmp.Or(cmp.Compare(x.Owner, y.Owner), cmp.Compare(x.Relation, y.Relation))
	})
	return out
}

// setOverdraft says how many of the Run's GPUs are beyond what their payers allow. A Run that never had any says nothing.
func (s *state) setOverdraft(next *rqv1.RunStatus) {
	condition := metav1.Condition{
		Type: rqv1.ConditionOverdraft, Status: metav1.ConditionFalse, Reason: "WithinBudget",
		Message: "every GPU is within what its payer allows", ObservedGeneration: s.Run.Generation,
	}
	var owed []string
	gpus := int32(0)
	if next.Funding != nil {
		for _, payer := range next.Funding.Sponsors {
			if payer.Relation == relationOverdraft {
				gpus += payer.GPUs
				owed = append(owed, fmt.Sprintf("%d of %s", payer.GPUs, payer.Owner))
			}
		}
	}
	if gpus > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, "BeyondBudget"
		condition.Message = fmt.Sprintf("%d GPUs are beyond what their payers allow by now (%s); the Run goes on, and they count under every cap of their payers until they are gone",
			gpus, strings.Join(owed, ", "))
	} else if meta.FindStatusCondition(next.Conditions, rqv1.ConditionOverdraft) == nil {
		return
	}
	s.setCondition(next, condition)
}
