package controllers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ttls are how long a Run stays after its end. What its Leases and its Reservation say in the end is the same.
var ttls = map[string]int32{"stays": 3600, "goes at once": 0}

// TestARunStaysWhileALeaseOfItIsBeingWritten whose pod is gone: it is closed for what the Run ended with.
func TestARunStaysWhileALeaseOfItIsBeingWritten(t *testing.T) {
	for name, ttl := range ttls {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit(func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = &ttl })
			looks := func(n int) {
				for range n {
					if _, err := c.look(); err != nil {
						t.Fatal(err)
					}
				}
			}
			looks(1)
			late := c.bindAllBut("train-1")
			c.become(corev1.PodFailed, 0)
			looks(4)
			if err := c.kinds.Create(t.Context(), late); err != nil {
				t.Fatal(err)
			}
			looks(4)
			leases := listed[rqv1.LeaseList](c).Items
			for i := range leases {
				if leases[i].Status.ClosureReason != rqv1.ClosedFailed {
					t.Errorf("Lease %s is closed: %v, for %s", leases[i].Name, leases[i].Status.Closed,
						leases[i].Status.ClosureReason)
				}
			}
			if runs := len(listed[rqv1.RunList](c).Items); len(leases) != 2 || (runs == 0) != (ttl == 0) {
				t.Errorf("%d Leases and %d Runs are there", len(leases), runs)
			}
		})
	}
}

// TestARunStaysWhileNoCacheHoldsItsReservation which the book knows from the answer to its write: it ends Released.
func TestARunStaysWhileNoCacheHoldsItsReservation(t *testing.T) {
	for name, ttl := range ttls {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.submit(func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = &ttl })
			starts(c)
			r := reserved(rqv1.ReservationActivating, "")
			r.Namespace, r.Name = "ns", "train-r0"
			r.Labels = map[string]string{rqv1.LabelRun: "train", rqv1.LabelRunUID: "run"}
			r.Spec.RunRef = rqv1.NamespacedName{Namespace: "ns", Name: "train"}
			c.book.SetReservation(r)
			c.become(corev1.PodSucceeded, 0, 1)
			var wrote []string
			looks := func(n int) {
				for range n {
					w, err := c.look()
					if wrote = append(wrote, w...); err != nil {
						t.Fatal(err)
					}
				}
			}
			looks(3)
			if err := c.kinds.Create(t.Context(), r.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			looks(4)
			got := &rqv1.Reservation{}
			if err := c.kinds.Get(t.Context(), client.ObjectKeyFromObject(r), got); err != nil {
				t.Fatal(err)
			}
			if got.Status.State != rqv1.ReservationReleased {
				t.Errorf("%s: %s, after %v", got.Status.State, got.Status.Reason, wrote)
			}
			if there := fmt.Sprint(len(listed[rqv1.RunList](c).Items)); there != map[int32]string{0: "0", 3600: "1"}[ttl] {
				t.Errorf("%s Runs are there", there)
			}
		})
	}
}
