package story

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// backfillStories are of Runs that start beside one which is promised a start.
func backfillStories() []Story {
	return []Story{
		{Name: "far-dates-keep-no-money", Args: map[string]any{"lottery": "None"}, Play: moneyForADate(0)},
		{Name: "dates-within-a-day-keep-money", Args: map[string]any{"lottery": "None"}, Play: moneyForADate(7 * time.Hour)},
		{Name: "backfill-is-told-its-risk", Play: backfillIsToldItsRisk},
		{Name: "packing-avoids-reserved-slices", Play: packingAvoidsReserved},
	}
}

// risk is an error unless a Run's condition AtRisk has a status, none for an empty one, and its risks go with it.
func (s *Teller) risk(run string, status metav1.ConditionStatus) error {
	is, got := s.Run(run).Status, metav1.ConditionStatus("")
	if found := meta.FindStatusCondition(is.Conditions, rqv1.ConditionAtRisk); found != nil {
		got = found.Status
	}
	if got != status || (len(is.AtRisk) > 0) != (status == metav1.ConditionTrue) {
		return fmt.Errorf("Run %s has the condition %q and %d risks, want %q", run, got, len(is.AtRisk), status)
	}
	return nil
}

// backfillIsToldItsRisk starts Runs in the slice of a Reservation: the one that may still run then is told at once that
// it may be cut, and the one that has ended by then is not. The money that the Reservation is to be paid from is kept
// from another. When the Run that waits is deleted, so are the risks, and the money is free.
func backfillIsToldItsRisk(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 64))
	s.Submit("holder", 16, InPods(8))
	s.Says("holder", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("wanted", 32, InPods(8))
	r := s.Promised("wanted", rqv1.ReservationPending)
	s.AtRisk("holder", r.Name, "1")
	s.Submit("brief", 8, InPods(8), Lasts(5*time.Minute))
	s.Says("brief", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("filler", 8, InPods(8))
	s.Says("filler", rqv1.RunRunning, "bound 8 GPUs")
	s.AtRisk("filler", r.Name, "1")
	s.Told("Run", "filler", "Reserved", "")
	s.Submit("worse-off", 16, InPods(8)) // brief has given 8 of the 32 back by then
	kept := s.Says("worse-off", rqv1.RunPending,
		"32 of 64 GPUs in use, 24 reserved for Run "+s.site.Namespace+"/wanted to start at")
	if f := kept.Status.Refusal; f == nil || f.Limit == nil || f.Limit.Reserved == nil || f.Limit.Reserved.Amount != 24 {
		s.Errorf("why it is refused, as data: %+v", f)
	}
	s.Never(time.Second, "the Run that ends in time", func() error { return s.risk("brief", "") })
	s.must(s.risk("filler", metav1.ConditionTrue))
	s.Same("conflict set", []string{"filler Lottery 8 1", "holder Lottery 16 1"},
		Conflicts(s.Promised("wanted", rqv1.ReservationPending)))

	s.Remove("wanted")
	s.Promised("wanted", rqv1.ReservationCanceled)
	s.Says("worse-off", rqv1.RunPending, "16 "+s.site.Flavor+" GPUs are needed")
	s.Remove("worse-off")
	for _, run := range []string{"holder", "filler"} {
		s.Until(run+" is safe", func() error { return s.risk(run, metav1.ConditionFalse) })
		s.Told("Run", run, "Safe", "")
	}
}

// packingAvoidsReserved starts Runs beside a Reservation: they go elsewhere while they can, unless they end in time.
func packingAvoidsReserved(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 3)
	s.Fund("", Envelope("all", 64))
	s.Submit("holder", 8, InPods(8), s.InDomain("d0"))
	s.Says("holder", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("wanted", 16, InPods(8), s.InDomain("d0"))
	r := s.Promised("wanted", rqv1.ReservationPending)
	s.Same("its nodes", []string{s.full("d0-0"), s.full("d0-1")}, r.Spec.IntendedSlice.Nodes)
	in := func(run, domain string, nodes int) {
		s.T.Helper()
		s.Says(run, rqv1.RunRunning, "bound")
		found, held := 0, s.Held(run)
		for node := range held {
			if strings.HasPrefix(node, domain+"-") {
				found++
			}
		}
		s.Same(fmt.Sprintf("nodes of %s that %s is on, of %v", domain, run, held), nodes, found)
	}
	s.Submit("brief", 8, InPods(8), Lasts(5*time.Minute))
	in("brief", "d0", 1)
	s.Remove("brief")
	s.Gone("brief")
	s.Submit("small", 8, InPods(8))
	in("small", "d1", 1)
	s.Submit("large", 16, InPods(8))
	in("large", "d1", 2)
	s.Submit("last", 8, InPods(8))
	in("last", "d0", 1)
	s.AtRisk("last", r.Name, "1")
}

// moneyForADate has a Run wait for the end of another that may take thirty hours. Once that is at most a day off its
// money is kept from whoever comes after it, and until then it is not.
func moneyForADate(waits time.Duration) func(*Teller) {
	return func(s *Teller) {
		s.Nodes("d0", 2)
		s.Fund("", Envelope("all", 16))
		s.Submit("holder", 8, InPods(8), Lasts(30*time.Hour))
		s.Says("holder", rqv1.RunRunning, "bound 8 GPUs")
		s.Submit("wanted", 16, InPods(8))
		s.Promised("wanted", rqv1.ReservationPending)
		s.Later(waits)
		s.Submit("young", 4, InPods(4))
		if waits > 0 {
			s.Says("young", rqv1.RunPending, "8 reserved for Run "+s.site.Namespace+"/wanted to start at")
			s.Remove("wanted")
		}
		s.Says("young", rqv1.RunRunning, "bound 4 GPUs")
	}
}
