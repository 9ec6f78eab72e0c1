package lifecycle

import (
	"cmp"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// relationOverdraft marks GPUs that their payer allows no more, in place of what it is to the owner (R8).
const relationOverdraft = "overdraft"

// fundingOf adds up who pays for the Run's open Leases. Whatever the owner's own envelopes do not pay for, or allow no
// more, is borrowed.
func fundingOf(f *facts) *rqv1.RunFundingStatus {
	out := &rqv1.RunFundingStatus{}
	type other struct {
		owner    rqv1.Owner
		relation string
	}
	others := map[other]int32{}
	for _, lease := range f.Leases {
		pod := f.podOf[lease.PodUID()]
		if pod == nil || !unfinished(pod) {
			continue
		}
		over := min(int32(f.Overdraft(lease)), lease.GPUs())
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
