package ending

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func failed(edits ...func(*corev1.PodStatus)) *corev1.Pod {
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	for _, edit := range edits {
		edit(&pod.Status)
	}
	return pod
}

func deleted(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{Time: noon}
	return pod
}

func disrupted(by, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: by, Message: message, LastTransitionTime: metav1.NewTime(noon)})
	}
}

func says(reason, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) { s.Reason, s.Message = reason, message }
}

func exits(name string, code int32, reason string, after time.Duration) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: " last words\n",
				FinishedAt: metav1.NewTime(noon.Add(after))}}})
	}
}

func waits(name string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: name,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}})
	}
}

func TestWhoEndedAPod(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want Ending
	}{
		"a program that fails": {failed(exits("main", 1, "Error", 0)),
			Ending{rqv1.CauseProgram, "Error", "last words", "main", 1, noon}},
		"the first container to fail is told": {failed(exits("main", 143, "Error", time.Second),
			exits("side", 0, "Completed", 0), exits("data", 7, "Error", 0)),
			Ending{rqv1.CauseProgram, "Error", "last words", "data", 7, noon}},
		"out of its own memory": {failed(exits("main", 137, "OOMKilled", 0)),
			Ending{rqv1.CauseProgram, "OOMKilled", "last words", "main", 137, noon}},
		"a graceful shutdown": {failed(disrupted("TerminationByKubelet", "node shutdown"), says("Terminated", "shut down"),
			exits("main", 143, "Error", time.Second)),
			Ending{rqv1.CauseNode, "TerminationByKubelet", "node shutdown", "main", 143, noon.Add(time.Second)}},
		"a shutdown by the status alone": {failed(says("Terminated", "shut down"), exits("main", 143, "Error", 0)),
			Ending{rqv1.CauseNode, "Terminated", "shut down", "main", 143, noon}},
		"an eviction by the API": {failed(disrupted("EvictionByEvictionAPI", "drain"), exits("main", 143, "Error", 0)),
			Ending{rqv1.CauseNode, "EvictionByEvictionAPI", "drain", "main", 143, noon}},
		"node pressure": {failed(disrupted("TerminationByKubelet", "low on memory"), says("Evicted", "low on memory"),
			exits("main", 137, "Error", 0)), Ending{rqv1.CauseNode, "TerminationByKubelet", "low on memory", "main", 137, noon}},
		"more storage than its limit": {failed(says("Evicted", "exceeds its limit"), exits("main", 137, "Error", 0)),
			Ending{rqv1.CauseProgram, "Evicted", "exceeds its limit", "main", 137, noon}},
		"turned away by a node under pressure": {failed(says("Evicted", "under pressure"), waits("main")),
			Ending{Cause: rqv1.CauseNode, Sign: "Evicted", Message: "under pressure"}},
		"fewer devices than the node said": {failed(says("OutOfnvidia.com/gpu", "0 of 8")),
			Ending{Cause: rqv1.CauseNode, Sign: "OutOfnvidia.com/gpu", Message: "0 of 8"}},
		"a device plugin that fails": {failed(says("UnexpectedAdmissionError", "Allocate failed")),
			Ending{Cause: rqv1.CauseNode, Sign: "UnexpectedAdmissionError", Message: "Allocate failed"}},
		"a word that nobody knows, before it began": {failed(says("Whatever", "no")),
			Ending{Cause: rqv1.CauseNode, Sign: "Whatever", Message: "no"}},
		"and after": {failed(says("Whatever", "no"), exits("main", 1, "Error", 0)),
			Ending{rqv1.CauseProgram, "Whatever", "no", "main", 1, noon}},
		"its own deadline": {failed(says("DeadlineExceeded", "too long"), exits("main", 143, "Error", 0)),
			Ending{rqv1.CauseUser, "DeadlineExceeded", "too long", "main", 143, noon}},
		"a cut": {deleted(failed(disrupted("PreemptionByScheduler", "cut"), exits("main", 143, "Error", 0))),
			Ending{rqv1.CauseScheduler, "PreemptionByScheduler", "cut", "main", 143, noon}},
		"a notice that nothing followed": {failed(disrupted("PreemptionByScheduler", "cut"), exits("main", 1, "Error", 0)),
			Ending{rqv1.CauseProgram, "Error", "last words", "main", 1, noon}},
		"a disruption that nobody knows": {failed(disrupted("Remediation", "")),
			Ending{Cause: rqv1.CauseNode, Sign: "Remediation", At: noon}},
		"a container of which nothing is known": {failed(exits("main", 137, "ContainerStatusUnknown", 0)),
			Ending{rqv1.CauseNode, "ContainerStatusUnknown", "last words", "main", 137, noon}},
		"nothing at all": {failed(), Ending{Cause: rqv1.CauseProgram}},
	} {
		got, ok := Of(c.pod)
		if diff := cmp.Diff(c.want, got); diff != "" || !ok {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if e, ok := Of(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}); ok {
		t.Errorf("a pod that runs has ended: %+v", e)
	}
}

func TestAnEndIsToldInAFewWords(t *testing.T) {
	for want, d := range map[string]rqv1.RunDeath{
		"rank 3 ended on node n1, because of its program: OOMKilled (container main, exit code 137): last words": {Index: 3,
			Node: "n1", Cause: rqv1.CauseProgram, Sign: "OOMKilled", Message: "last words", Container: "main", ExitCode: 137},
		"rank 0 ended on node n1, because of the node: NodeShutdown: rejected": {Node: "n1", Cause: rqv1.CauseNode,
			Sign: "NodeShutdown", Message: "rejected"},
		"rank 0 ended on node n1, because of its user: failed": {Node: "n1", Cause: rqv1.CauseUser},
	} {
		if got := Told(&d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
