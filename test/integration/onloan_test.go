package integration

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestLoanIsGivenBack has a Run grow to four times its total on an idle fleet. A Run that comes then starts within the
// notice, and not at the date on which others would be cut for it.
func TestLoanIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 64)
	s.submit("lender", 8, inGroups(8), malleable(8, 32, 8))
	s.await("lender", rqv1.RunRunning, "grew to 32 GPUs")
	s.submit("starter", 8)
	s.await("starter", rqv1.RunRunning, "bound 8 GPUs")
	s.await("lender", rqv1.RunRunning, "shrunk to 24 GPUs")
	eventually(t, "the record of the return", func() error {
		list := &rqv1.ReservationList{}
		if err := s.api.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			r := &list.Items[i].Status
			if r.State == rqv1.ReservationReleased && len(r.Cuts) == 1 && r.Cuts[0].Action == rqv1.CutReturn &&
				*r.Cuts[0].Width == 24 && len(r.Lottery.Draws) == 0 {
				return nil
			}
		}
		return fmt.Errorf("%d Reservations: %+v", len(list.Items), list.Items)
	})
}
