package ending

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestASidecarThatIsStartedAgainIsNoDeath: a sidecar (KEP-753) is an init container that its kubelet always starts
// again, whatever the pod's restartPolicy; the rank goes on meanwhile. Webhooks add such containers to pods of Runs.
func TestASidecarThatIsStartedAgainIsNoDeath(t *testing.T) {
	pod := withSidecar()
	if e, _, times, restarted := Restarted(pod); restarted {
		t.Errorf("a rank that runs counts as dead, for the %d. time: %+v", times, e)
	}
	pod.Status.ContainerStatuses[0].RestartCount = 1
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7}
	if e, _, times, restarted := Restarted(pod); !restarted || times != 1 || e.Container != "main" || e.ExitCode != 7 {
		t.Errorf("one whose program was started again: %t, %d times, %+v", restarted, times, e)
	}
}

// TestASidecarDoesNotSayWhatBecomesOfARank: onExitCodes is about programs, not about what ended beside them.
func TestASidecarDoesNotSayWhatBecomesOfARank(t *testing.T) {
	pod := withSidecar()
	pod.Status.Phase = corev1.PodFailed
	ended := func(code int32, after time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error",
			FinishedAt: metav1.NewTime(noon.Add(after))}}
	}
	pod.Status.InitContainerStatuses[0].State = ended(143, 0)
	pod.Status.ContainerStatuses[0].State = ended(43, time.Second)
	want := Ending{Cause: rqv1.CauseProgram, Sign: "Error", Container: "main", ExitCode: 43, At: noon.Add(time.Second)}
	got, _ := Of(pod)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// withSidecar is a pod that runs, the sidecar of which has been started again.
func withSidecar() *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "logs", RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "logs", RestartCount: 4,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
					Reason: "OOMKilled"}}}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
}
