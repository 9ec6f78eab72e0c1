package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestLostWorkAddsUp has one envelope pay for work that a program, a node and a user lose: its usage tells of each what
// the Leases come to.
func TestLostWorkAddsUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("train", 16, inPods(8), checkpoint(time.Hour))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.works(2 * time.Second)
	s.ends("train-1", exits(1, ""))
	s.restarted("train", "restart 1 of 3")
	s.works(2 * time.Second)
	node := s.ends("train-0", disruptedBy("TerminationByKubelet", "Terminated"))
	eventually(t, "the rank is to be on another node", func() error {
		run, err := s.get("train")
		if err != nil {
			return err
		}
		if on := s.podsOf("train")["train-0"].Spec.NodeName; on == "" || on == node || run.Status.Ready != 2 {
			return fmt.Errorf("it is on %q, and %d are ready", on, run.Status.Ready)
		}
		return nil
	})
	s.works(2 * time.Second)
	s.removeRun("train")
	s.awaitGone("train")
	want := map[rqv1.EndCause]int64{}
	eventually(t, "all Leases are to be closed", func() error {
		clear(want)
		for _, lease := range s.leasesOf("train") {
			if !lease.Status.Closed {
				return fmt.Errorf("Lease %s is open", lease.Name)
			}
			if lost := lease.Status.Lost; lost != nil {
				want[lease.Status.Cause] += lost.GPUSeconds + lost.OthersGPUSeconds
			}
		}
		return nil
	})
	if len(want) != 3 {
		t.Errorf("the Leases tell of %v lost, want some by a program, a node and a user", want)
	}
	eventually(t, "the usage is to tell of it", func() error {
		var told struct{ Envelopes []lostRow }
		out := s.runs("budgets usage -o json --owner " + string(s.owner))
		if err := json.Unmarshal([]byte(out), &told); err != nil || len(told.Envelopes) != 1 {
			return fmt.Errorf("%w: %s", err, out)
		}
		got, sum := map[rqv1.EndCause]int64{}, 0.0
		for _, lost := range told.Envelopes[0].LostByCause {
			got[lost.Cause] = int64(math.Round(lost.GPUHours * 3600))
			sum += lost.GPUHours
		}
		if all := told.Envelopes[0].LostGPUHours; math.Abs(sum-all) > 1e-9 {
			return fmt.Errorf("by cause it is %f, and in all %f", sum, all)
		}
		return differs(want, got)
	})
	for _, format := range []string{"-o wide", "--tree", "-o yaml"} {
		if out := s.runs("budgets usage --owner " + string(s.owner) + " " + format); !strings.Contains(out, "Program") ||
			!strings.Contains(out, "User") {
			t.Errorf("budgets usage %s does not tell who lost work:\n%s", format, out)
		}
	}
}

// lostRow is what a script reads of the work that was lost of an envelope.
type lostRow struct {
	LostGPUHours float64
	LostByCause  []struct {
		Cause    rqv1.EndCause
		GPUHours float64
	}
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
