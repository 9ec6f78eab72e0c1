package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// exits is the status of a pod whose program has ended with an exit code and a last word.
func exits(code int32, word string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "pause", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: word,
			FinishedAt: metav1.Now()}}}}}
}

// restarts says how often a Run is started again, and by which exit codes it is not, or elsewhere.
func restarts(limit int32, codes map[string]rqv1.RestartAction) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		checkpoint(time.Hour)(r)
		r.Spec.Runtime.Restarts = &rqv1.RunRestarts{Limit: &limit, OnExitCodes: codes}
	}
}

// restarted waits until a Run says how often it was restarted, and all of it runs.
func (s *site) restarted(name string, words ...string) *rqv1.Run {
	s.t.Helper()
	var out *rqv1.Run
	eventually(s.t, "the Run is to have been restarted", func() error {
		run, err := s.get(name)
		if err != nil {
			return err
		}
		for _, word := range words {
			if !strings.Contains(run.Status.Message, word) {
				return fmt.Errorf("it is %s: %q does not say %q", run.Status.Phase, run.Status.Message, word)
			}
		}
		tells := run.Status.Restarts
		if tells == nil || tells.Ready == nil || run.Status.Width.Allocated != run.Spec.Resources.TotalGPUs {
			return fmt.Errorf("it has %d GPUs; %+v", run.Status.Width.Allocated, tells)
		}
		out = run
		return nil
	})
	return out
}

// reasons are the reasons for which a Run's open Leases were opened.
func (s *site) reasons(run string) map[rqv1.LeaseReason]int {
	s.t.Helper()
	out := map[rqv1.LeaseReason]int{}
	for _, lease := range s.leasesOf(run) {
		if !lease.Status.Closed {
			out[lease.Spec.Reason]++
		}
	}
	return out
}

// envOf returns what a pod's program is told under a name.
func envOf(pod *corev1.Pod, name string) string {
	for _, v := range pod.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// TestARankThatDiesIsRestartedWhereItWas on a fleet that is full, with somebody waiting for what it holds.
func TestARankThatDiesIsRestartedWhereItWas(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 100)
	s.submit("train", 24, inPods(8), checkpoint(time.Hour))
	s.await("train", rqv1.RunRunning, "bound 24 GPUs")
	s.submit("rival", 8, inPods(8))
	s.await("rival", rqv1.RunPending, "")
	before := s.podsOf("train")
	node := s.ends("train-1", exits(1, "CUDA error: device-side assert"))
	run := s.restarted("train", "rank 1 restarted (restart 1 of 3)", "rank 1 ended on node "+node, "exit code 1): CUDA "+
		"error: device-side assert")
	after := s.podsOf("train")
	for name, pod := range before {
		again := after[name]
		if again.Spec.NodeName != pod.Spec.NodeName || (again.UID == pod.UID) == (name == "train-1") {
			t.Errorf("%s: %s on %s, before %s on %s", name, again.UID, again.Spec.NodeName, pod.UID, pod.Spec.NodeName)
		}
	}
	again := after["train-1"]
	for variable, want := range map[string]string{"JOBTREE_EPOCH": "1", "TORCHELASTIC_RESTART_COUNT": "1", "RANK": "1"} {
		if got := envOf(&again, variable); got != want {
			t.Errorf("%s is %q, want %q", variable, got, want)
		}
	}
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedFailed: 1, "": 3}, s.closures("train")); diff != "" {
		t.Errorf("Leases closed (-want +got):\n%s", diff)
	}
	opened := map[rqv1.LeaseReason]int{rqv1.ReasonStart: 2, rqv1.ReasonRestart: 1}
	if diff := cmp.Diff(opened, s.reasons("train")); diff != "" {
		t.Errorf("Leases opened (-want +got):\n%s", diff)
	}
	if len(run.Status.Deaths) != 1 || !run.Status.Deaths[0].First || run.Status.Deaths[0].Action != rqv1.ActionRestart {
		t.Errorf("the Run tells of %+v", run.Status.Deaths)
	}
	if rival, err := s.get("rival"); err != nil || rival.Status.Phase != rqv1.RunPending {
		t.Errorf("the one that waits is %s: %v", rival.Status.Phase, err)
	}
	s.settled()
}

// TestAPoisonProgram dies wherever it is, again and again: its spare is tried, and the Run says what has come of it.
func TestAPoisonProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("poison", 16, inPods(8), inGroups(16), withSpares(8), restarts(2, nil))
	s.await("poison", rqv1.RunRunning, "bound 16 GPUs")
	spare := s.podsOf("poison")["poison-s0"].Spec.NodeName
	first := s.ends("poison-1", exits(7, "no such file"))
	s.restarted("poison", "rank 1 restarted (restart 1 of 2)")
	if again := s.ends("poison-1", exits(7, "no such file")); again != first {
		t.Errorf("it died first on %s and then on %s", first, again)
	}
	s.restarted("poison", "group 0 swapped to spare after a rank died again on node "+first)
	if on := s.ends("poison-1", exits(7, "no such file")); on != spare {
		t.Errorf("it died last on %s, want on its spare's node %s", on, spare)
	}
	run := s.await("poison", rqv1.RunFailed, "rank 1 died on node "+spare+": Error (container pause, exit code 7): no "+
		"such file; it was the first to die 3 times, on "+first+" (twice), "+spare)
	if run.Status.Restarts.Counted != 3 {
		t.Errorf("the Run tells of %+v", run.Status.Restarts)
	}
	s.settled()
}

// TestWhereThereIsNoOther has a rank that dies again stay where it is, since no other node is free.
func TestWhereThereIsNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("train", 16, inPods(8), restarts(5, nil))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	first := s.ends("train-0", exits(1, ""))
	s.restarted("train", "restart 1 of 5")
	if again := s.ends("train-0", exits(1, "")); again != first {
		t.Errorf("it died first on %s and then on %s", first, again)
	}
	s.restarted("train", "restart 2 of 5")
	if on := s.podsOf("train")["train-0"].Spec.NodeName; on != first {
		t.Errorf("it is on %q, want %s", on, first)
	}
	s.settled()
}

// TestAllRanksDieTogether restarts all of them where they were, twice.
func TestAllRanksDieTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 5, 100)
	s.submit("train", 24, inPods(8), inGroups(24), withSpares(8), checkpoint(time.Hour))
	s.await("train", rqv1.RunRunning, "bound 24 GPUs")
	for round := range 2 {
		before := s.podsOf("train")
		end := exits(1, "NCCL timeout")
		for index := range 3 {
			s.ends(fmt.Sprintf("train-%d", index), end)
		}
		s.restarted("train", fmt.Sprintf("3 ranks restarted (restart %d of 3) after rank", round+1))
		for name, pod := range s.podsOf("train") {
			if pod.Spec.NodeName != before[name].Spec.NodeName {
				t.Errorf("%s is on %s, was on %s", name, pod.Spec.NodeName, before[name].Spec.NodeName)
			}
		}
	}
	s.settled()
}

// TestExitCodes has a program say that it would be of no use, or that its node is bad.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	codes := map[string]rqv1.RestartAction{"42": rqv1.ActionFail, "43": rqv1.ActionMove}
	s.submit("moves", 8, inPods(8), restarts(3, codes))
	s.submit("fails", 8, inPods(8), restarts(3, codes))
	s.await("moves", rqv1.RunRunning, "bound 8 GPUs")
	s.await("fails", rqv1.RunRunning, "bound 8 GPUs")
	bad := s.ends("moves-0", exits(43, "ECC error"))
	s.restarted("moves", "rank 0 restarted (restart 1 of 3)")
	if on := s.podsOf("moves")["moves-0"].Spec.NodeName; on == bad {
		t.Errorf("it is still on %s", bad)
	}
	s.ends("fails-0", exits(42, "bad configuration"))
	s.await("fails", rqv1.RunFailed, "runtime.restarts.onExitCodes says Fail for exit code 42, so the Run does not "+
		"restart")
	s.settled()
}

// TestAProgramThatDiesAtOnce dies before all of its Run is bound, or soon after.
func TestAProgramThatDiesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("hasty", 32, inPods(4), restarts(1, nil), annotated("pod-fail.stage.kwok.x-k8s.io/delay", "1ms"))
	s.await("hasty", rqv1.RunFailed, "rank")
	s.settled()
}

// TestAPoisonNodeUnderTwoRuns has ranks of two owners die on one node: it is suspect, and avoided while there is
// another.
func TestAPoisonNodeUnderTwoRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("one", 4, inPods(4), checkpoint(time.Hour))
	s.await("one", rqv1.RunRunning, "bound 4 GPUs")
	s.submit("two", 4, inPods(4), s.by("another"))
	s.await("two", rqv1.RunRunning, "bound 4 GPUs")
	bad := s.podsOf("one")["one-0"].Spec.NodeName
	if on := s.podsOf("two")["two-0"].Spec.NodeName; on != bad {
		t.Fatalf("they are on %s and %s, want them together", bad, on)
	}
	s.ends("one-0", exits(1, "Xid 79"))
	s.restarted("one", "restart 1 of 3")
	s.ends("two-0", exits(1, "Xid 79"))
	s.await("two", rqv1.RunFailed, "")
	eventually(t, "the node is to be suspect", func() error {
		out := s.runs("nodes")
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, bad+" ") && strings.Contains(line, "Suspect") && strings.Contains(line, "TwoOwners") {
				return nil
			}
		}
		return fmt.Errorf("the command says:\n%s", out)
	})
	s.submit("three", 4, inPods(4))
	s.await("three", rqv1.RunRunning, "bound 4 GPUs")
	if on := s.podsOf("three")["three-0"].Spec.NodeName; on == bad {
		t.Errorf("who comes next is on %s too", on)
	}
	if out := s.runs("nodes clear " + bad); !strings.Contains(out, "node "+bad+" is cleared") {
		t.Errorf("the command says %q", out)
	}
	s.submit("four", 4, inPods(4))
	s.await("four", rqv1.RunRunning, "bound 4 GPUs")
	if on := s.podsOf("four")["four-0"].Spec.NodeName; on != bad {
		t.Errorf("who comes once it is cleared is on %s, want %s", on, bad)
	}
	s.settled()
}

// TestItsKubeletRestartsARank as the template says: that counts as a death, and the second time the rank moves.
func TestItsKubeletRestartsARank(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 100)
	s.submit("train", 16, inPods(8), restarts(2, nil), func(r *rqv1.Run) {
		template(r).Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	})
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	first := s.restartsInPlace("train-1", 1)
	s.restarted("train", "bound 16 GPUs")
	if run, err := s.get("train"); err != nil || run.Status.Restarts.Counted != 1 || run.Status.Deaths[0].Restarts != 1 {
		t.Errorf("the Run tells of %+v, %+v (%v)", run.Status.Restarts, run.Status.Deaths, err)
	}
	s.restartsInPlace("train-1", 2)
	s.restarted("train", "rank 1 restarted (restart 2 of 2)")
	if on := s.podsOf("train")["train-1"].Spec.NodeName; on == first {
		t.Errorf("it is still on %s", on)
	}
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedFailed: 1, "": 2}, s.closures("train")); diff != "" {
		t.Errorf("Leases closed (-want +got):\n%s", diff)
	}
	s.restartsInPlace("train-1", 1)
	s.await("train", rqv1.RunFailed, "which is its limit")
	s.settled()
}

// restartsInPlace has the kubelet start the container of a pod that runs again, for the nth time.
func (s *site) restartsInPlace(name string, times int32) (node string) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to restart the container", func() error {
		pod := s.podsOf(s.runOf(name))[name]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
		}
		node = pod.Spec.NodeName
		now := metav1.Now()
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pause", RestartCount: times, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error", StartedAt: now, FinishedAt: now}}}}
		return s.api.Status().Update(s.t.Context(), &pod)
	})
	return node
}

// runOf returns the Run that a rank's pod is called after.
func (s *site) runOf(pod string) string { return pod[:strings.LastIndex(pod, "-")] }
