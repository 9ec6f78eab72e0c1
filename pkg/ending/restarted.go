package ending

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Restarted returns how the container of a pod ended that its kubelet started again last, when that had been started,
// and how often the kubelet has started containers of the pod again; false for a pod in which none has failed. Sidecars
// do not count.
func Restarted(pod *corev1.Pod) (e Ending, began time.Time, times int32, ok bool) {
	var last *corev1.ContainerStateTerminated
	for c := range programs(pod) {
		times += c.RestartCount
		t := c.LastTerminationState.Terminated
		if t == nil || t.ExitCode == 0 || last != nil && !last.FinishedAt.Before(&t.FinishedAt) {
			continue
		}
		last = t
		e = Ending{Cause: known(InContainer, t.Reason, rqv1.CauseProgram), Sign: t.Reason, Container: c.Name,
			Message: strings.TrimSpace(t.Message), ExitCode: t.ExitCode, At: t.FinishedAt.Time}
	}
	if last == nil || times == 0 {
		return Ending{}, time.Time{}, 0, false
	}
	return e, last.StartedAt.Time, times, true
}
