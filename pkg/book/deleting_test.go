package book_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// dismissRun deletes a Run whose object a finalizer keeps. Its pods are left to the scheduler.
func (w *world) dismissRun(name string) {
	run := w.Runs[name].DeepCopy()
	run.DeletionTimestamp, run.Finalizers = &metav1.Time{Time: w.Now}, []string{"example.com/audit"}
	w.SetRun(run)
}

// orphanRun deletes a Run the way that leaves its pods behind, without their references.
func (w *world) orphanRun(name string) {
	w.ForgetRun(name)
	for _, uid := range w.SortedPods() {
		if pod := w.Pods[uid].DeepCopy(); pod.Labels[rqv1.LabelRun] == name {
			pod.OwnerReferences = nil
			w.SetPod(pod)
		}
	}
}

// A finalizer keeps the object of a deleted Run for as long as somebody likes. What the Run held is given to others all
// the same, and nobody is drawn for it meanwhile.
func TestADeletedRunHoldsNothingWhateverKeepsItsObject(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 2, 4)
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil || !p.Cuts {
			s.t.Fatalf("run1 is not to start at the cost of run0: %+v", p)
		}
		s.dismissRun("run0")
		s.refreshAt(s.Now.Add(time.Minute))
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil || len(p.Conflicts) > 0 {
			s.t.Fatalf("run0 may be cut though it is being deleted: %+v", p)
		}
		s.work()
		s.running("run1", "though nothing is left of run0")
		if message := s.Runs["run0"].Status.Message; message != "deleted: it holds no GPUs; its object is kept by "+
			"finalizers example.com/audit" {
			s.t.Fatalf("run0 says: %s", message)
		}
		s.DeleteRun("run0")
		s.work()
	})
}

// A Run that waits and is deleted waits no more: its Reservation is canceled and no pod is made for it, whatever keeps
// its object.
func TestADeletedRunThatWaitsHasNoReservation(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.dismissRun("run1")
		s.work()
		if r := s.Reservations["run1-r0"]; r == nil || r.Status.State != rqv1.ReservationCanceled {
			s.t.Fatalf("the Reservation of run1 is %+v, want it canceled", r)
		}
		s.finish("run0")
		s.during(time.Hour)
		s.work()
		if pods := s.podsOf("run1"); len(pods) > 0 || s.Runs["run1"].Status.Phase != rqv1.RunPending {
			s.t.Fatalf("run1 is %s and has pods %v", s.Runs["run1"].Status.Phase, pods)
		}
	})
}

// Pods that were to outlive their Run end when it is gone, and so do those of a Run that is deleted while nobody
// decides.
func TestOrphanedPodsEnd(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 2, 4)
		w.settle()
		w.orphanRun("run0")
		w.crash()
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.running("run1", "though run0 is gone")
		w.checkSettled()
	})
}

// A pod without its reference is as much its Run's as before: it is not replaced, and it ends as the Run does.
func TestPodsWithoutReferencesAreGoverned(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 2, 4)
		w.settle()
		before := w.podsOf("run0")
		for _, uid := range w.SortedPods() {
			pod := w.Pods[uid].DeepCopy()
			pod.OwnerReferences = nil
			w.SetPod(pod)
		}
		w.settle()
		w.crash()
		w.settle()
		w.unchanged(before)
		w.running("run0", "though its pods have lost their references")
		w.dismissRun("run0")
		w.settle()
		if left := w.podsOf("run0"); len(left) > 0 {
			w.t.Fatalf("pods %v outlive run0", left)
		}
		w.DeleteRun("run0")
		w.settle()
		w.checkSettled()
	})
}

// The interval is what a Run says of itself: it shields for an hour at most, however long it is (R22).
func TestNoCheckpointShieldsForEver(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.during(time.Second)
		s.submitWithSpares("run1", "org:a", 1, 1, 8, 0, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 999999 * time.Hour}}
		})
		s.work()
		s.due()
		s.work()
		s.during(noticePeriod)
		s.work()
		s.running("run1", "for which run0 was drawn")
		started := s.Now.Truncate(time.Second)
		s.submit("run2", "org:a", 1, 1, 8)
		s.work()
		if p := s.Book.Prospect(s.Runs["run2"].UID).Promise; p == nil || p.At.After(started.Add(time.Hour)) {
			s.t.Fatalf("run2 has no date within an hour of the start of run1: %+v\n%s", p, s.story())
		}
	})
}

// A pod of others that is deleted before it has a node never runs, and a finalizer may keep its object for ever.
// Nothing is promised to it, and another gets its rank and starts.
func TestAPodThatIsDeletedWhileItWaitsIsPromisedNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.submitWithSpares("run1", "org:a", 1, 2, 4, 0, theirs)
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil {
			s.t.Fatalf("run1 has no date\n%s", s.story())
		}
		pods := s.PodsOf("run1")
		if len(pods) != 2 {
			s.t.Fatalf("run1 has %d pods", len(pods))
		}
		pod, none := pods[1].DeepCopy(), int64(0)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: s.Now}, &none
		pod.Finalizers = []string{"example.com/mine"}
		gone := slot{s.Runs["run1"].UID, 1}
		s.controllers.less[gone] = true
		s.SetPod(pod)
		s.disturb()
		s.work()
		if r := s.Reservations["run1-r0"]; r == nil || r.Status.State != rqv1.ReservationCanceled {
			s.t.Fatalf("the Reservation of run1 is %+v, want it canceled", r)
		}
		delete(s.controllers.less, gone)
		s.work()
		s.finish("run0")
		s.work()
		s.during(time.Minute)
		s.work()
		s.running("run1", "though there is room for its other pod")
		s.DeletePod(pod.UID)
		s.work()
	})
}

// The leader of a Run is deleted as it waits, and a finalizer keeps its object, so that no other of its name can be
// made. Nothing is promised to the Run until then, and it says so.
func TestARunWhoseLeaderNeverRunsIsPromisedNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.submit("run1", "org:a", 1, 2, 4)
		s.work()
		pod := s.Pods[s.pod("run1-0")].DeepCopy()
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: s.Now}, []string{"example.com/mine"}
		s.SetPod(pod)
		s.disturb()
		s.work()
		const says = "pod run1-0 was deleted before it had a node"
		if r := s.Reservations["run1-r0"]; r == nil || r.Status.State != rqv1.ReservationCanceled ||
			!strings.Contains(s.Runs["run1"].Status.Message, says) {
			s.t.Fatalf("run1 says %s, and its Reservation is %+v, want it canceled", s.Runs["run1"].Status.Message, r)
		}
		s.DeletePod(pod.UID)
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil {
			s.t.Fatalf("run1 has no date once it has its leader\n%s", s.story())
		}
	})
}

// The Lease of a pod is being written as the pod is deleted, which has no node yet and never gets one. Its GPUs are
// held until the outcome is known, and the Lease closes at once, whether the pod is gone or a finalizer keeps it.
func TestALeaseThatIsWrittenForAPodThatNeverRunsCloses(t *testing.T) {
	for name, finalizers := range map[string][]string{"gone": nil, "kept": {"example.com/mine"}} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				first, lease := w.writing(16)
				if pod := w.Pods[first].DeepCopy(); finalizers == nil {
					w.DeletePod(first)
				} else {
					pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: w.Now}, finalizers
					w.SetPod(pod)
					w.Unreserve(first)
				}
				if second := w.place("run1-0"); w.Binding[second] != "" {
					w.t.Fatalf("the GPUs of a Lease that may be in the ledger are given to another pod")
				}
				w.SetLease(lease)
				w.settle()
				if is := w.Leases[lease.Name]; !is.Status.Closed || is.Status.ClosureReason != rqv1.ClosedUnwound {
					w.t.Fatalf("the Lease is %+v", is.Status)
				}
			})
		})
	}
}
