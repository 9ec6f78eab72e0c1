package integration

import (
	"fmt"
	"strings"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestCommandsThatSuspend holds a Run back by command, and lets it go on: it is told when it would start.
func TestCommandsThatSuspend(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	s.submit("young", 8)
	s.await("young", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("held", 8)
	s.await("held", rqv1.RunPending, "short by 8")
	s.runs("suspend held -n " + s.namespace)
	eventually(t, "its forecast", func() error {
		run, err := s.get("held")
		if err == nil && (run.Status.Forecast == nil || run.Status.Forecast.EarliestStart == nil) {
			err = fmt.Errorf("it is %+v, want a date", run.Status.Forecast)
		}
		return err
	})
	if told := s.runs("list -n " + s.namespace); !strings.Contains(told, "Suspended") {
		t.Errorf("list does not say that the Run is suspended:\n%s", told)
	}
	if told := s.runs("explain held -n " + s.namespace); !strings.Contains(told, "is Suspended") ||
		!strings.Contains(told, "it would start at") {
		t.Errorf("explain tells of a suspended Run:\n%s", told)
	}
	s.runs("resume held -n " + s.namespace)
	s.await("held", rqv1.RunPending, "short by 8")
}
