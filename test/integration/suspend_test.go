package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// suspended has a Run be submitted suspended.
func suspended(r *rqv1.Run) { r.Spec.Suspend = true }

// awaitForecast waits until a suspended Run's forecast is as it should be.
func (s *site) awaitForecast(name string, as func(*rqv1.RunForecast) error) {
	s.t.Helper()
	eventually(s.t, "the forecast of Run "+name, func() error {
		run, err := s.get(name)
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionSuspended) || run.Status.Forecast == nil {
			return fmt.Errorf("its status is %+v", run.Status)
		}
		return as(run.Status.Forecast)
	})
}

// TestARunIsSuspendedBeforeItStarts holds a Run back, which is forecast and keeps nobody from anything, and has it
// start when it is resumed, by its age.
func TestARunIsSuspendedBeforeItStarts(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("held", 16, inPods(8), suspended)
	s.awaitForecast("held", func(f *rqv1.RunForecast) error {
		if f.GPUs != 16 || f.Refusal != nil {
			return fmt.Errorf("it is %+v, want 16 GPUs at once", f)
		}
		return nil
	})
	if pods := s.podsOf("held"); len(pods) > 0 {
		t.Errorf("a suspended Run has pods %v", slices.Collect(maps.Keys(pods)))
	}
	if told := s.runs("list -n " + s.namespace); !strings.Contains(told, "Suspended") {
		t.Errorf("list does not say that the Run is suspended:\n%s", told)
	}
	s.submit("young", 16, inPods(8))
	s.await("young", rqv1.RunRunning, "bound 16 GPUs")
	s.runs("resume held -n " + s.namespace)
	run := s.await("held", rqv1.RunPending, "short by 16")
	if run.Status.Forecast != nil || meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionSuspended) {
		t.Errorf("it has been resumed, and its status is %+v", run.Status)
	}
	eventually(t, "a Reservation", func() error {
		if run, err := s.get("held"); err != nil || run.Status.PendingReservation == "" {
			return fmt.Errorf("it has none: %w", err)
		}
		return nil
	})
	s.runs("suspend held -n " + s.namespace)
	s.awaitForecast("held", func(f *rqv1.RunForecast) error {
		if f.EarliestStart == nil || f.Expected == nil || f.Expected.DeficitGPUs != 16 || f.Refusal == nil {
			return fmt.Errorf("it is %+v, want a date", f)
		}
		return nil
	})
	eventually(t, "the Reservation is canceled", func() error {
		all, err := s.reservations("held")
		if err != nil || len(all) != 1 || all[0].Status.State != rqv1.ReservationCanceled {
			return fmt.Errorf("Reservations are %+v: %w", all, err)
		}
		return nil
	})
	if told := s.runs("explain held -n " + s.namespace); !strings.Contains(told, "is Suspended") ||
		!strings.Contains(told, "it would start at") {
		t.Errorf("explain tells of a suspended Run:\n%s", told)
	}

	// one that only asks goes by itself when whoever has asked does not delete it
	s.submit("what-if-left", 8, inPods(8), suspended, func(r *rqv1.Run) {
		r.Labels, r.Spec.TTLSecondsAfterFinished = map[string]string{rqv1.LabelWhatIf: "true"}, ptr.To[int32](1)
	})
	s.awaitGone("what-if-left")
	s.settled()
}

// mustGet returns a Run.
func (s *site) mustGet(name string) *rqv1.Run {
	s.t.Helper()
	run, err := s.get(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// TestARunIsSuspendedWhileItRuns has a Run with a spare give up all that it holds, while the scheduler is killed, and
// start again when it is resumed.
func TestARunIsSuspendedWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, nil), 1, 3, 100)
	s.startScheduler()
	s.submit("train", 16, inPods(8), inGroups(16), withSpares(8),
		annotated("pod-delete.stage.kwok.x-k8s.io/delay", "4s"))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.runs("suspend train -n " + s.namespace)
	s.killAfter(0)
	s.await("train", rqv1.RunPending, "suspended")
	s.killAfter(time.Second) // its pods are ending
	s.awaitNoPods("train")
	eventually(t, "its GPU leases close", func() error {
		want := map[rqv1.ClosureReason]int{rqv1.ClosedSuspended: 3}
		if diff := cmp.Diff(want, s.closures("train")); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	s.submit("other", 24, inPods(8))
	s.await("other", rqv1.RunRunning, "bound 24 GPUs")
	if err := s.api.Delete(t.Context(), s.mustGet("other")); err != nil {
		t.Fatal(err)
	}
	s.awaitGone("other")
	s.killAfter(0)
	s.runs("resume train -n " + s.namespace)
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	eventually(t, "its ranks are ready", func() error {
		if run, err := s.get("train"); err != nil || run.Status.Ready != 2 {
			return fmt.Errorf("%d are: %w", run.Status.Ready, err)
		}
		return nil
	})
	s.settled()
	s.audit(0)
}
