package integration

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWorkThatWasSavedIsNotLost has a Run say when it saved its work before a rank of it dies.
func TestWorkThatWasSavedIsNotLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 100)
	s.submit("train", 16, inPods(8), checkpoint(time.Hour))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	started := time.Now()
	s.works(3 * time.Second)
	s.runs("checkpointed train -n " + s.namespace)
	s.works(2 * time.Second)
	s.ends("train-1", exits(1, ""))
	s.restarted("train", "restart 1 of 3")
	took := time.Since(started)
	var lost *rqv1.LeaseLost
	for _, lease := range s.leasesOf("train") {
		if lease.Status.Closed {
			lost = lease.Status.Lost
		}
	}
	if lost == nil || lost.GPUSeconds < 8 || lost.GPUSeconds > int64(8*(took-3*time.Second)/time.Second) ||
		lost.OthersGPUSeconds != lost.GPUSeconds {
		t.Errorf("the Lease tells of %+v lost, after %s", lost, took)
	}
	s.settled()
}

// works has programs make what may be lost, which takes time.
func (s *site) works(d time.Duration) {
	s.t.Helper()
	until := time.Now().Add(d)
	eventually(s.t, "work is to be done", func() error {
		if left := time.Until(until); left > 0 {
			return fmt.Errorf("for another %s", left)
		}
		return nil
	})
}

// TestWhoIsDoneIsNotWaitedFor has a pod with a long grace be told to go that says that it is done.
func TestWhoIsDoneIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("slow", 8, inPods(8), annotated("pod-delete.stage.kwok.x-k8s.io/delay", "20s"), func(r *rqv1.Run) {
		grace := int64(300)
		template(r).Spec.TerminationGracePeriodSeconds = &grace
	})
	s.await("slow", rqv1.RunRunning, "bound 8 GPUs")
	s.runs("checkpointed slow --take-me -n " + s.namespace)
	pod := s.podsOf("slow")["slow-0"]
	s.delete(&pod)
	eventually(t, "the pod is to have no more time", func() error {
		is := s.podsOf("slow")["slow-0"]
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(&pod), &is); err != nil {
			return client.IgnoreNotFound(err)
		}
		if given := is.DeletionGracePeriodSeconds; is.UID == pod.UID && (given == nil || *given > 1) {
			return fmt.Errorf("it has %v s", given)
		}
		return nil
	})
	run, err := s.get("slow")
	if err != nil {
		t.Fatal(err)
	}
	s.delete(run)
}
