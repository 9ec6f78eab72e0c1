package ending

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// NotReady is the sign of a rank that was not ready by its Run's startupDeadline (R39).
const NotReady = "NotReady"

// Late returns the end of a pod that was not ready by an instant, which its Run's startupDeadline has set. It may run
// for as long as nobody ends it.
func Late(pod *corev1.Pod, deadline time.Duration, by time.Time) Ending {
	e := Ending{Cause: known(InReadiness, NotReady, rqv1.CauseProgram), Sign: NotReady, At: by,
		Message: fmt.Sprintf("not ready within its startupDeadline of %s", deadline)}
	for c := range statuses(pod) {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			e.Message += fmt.Sprintf("; container %s waits: %s", c.Name, w.Reason)
			if w.Message != "" {
				e.Message += ": " + w.Message
			}
			break
		}
	}
	return e
}
