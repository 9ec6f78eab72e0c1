package v1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestARunWithoutARecordedEndStays however long it has been there.
func TestARunWithoutARecordedEndStays(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	ended := metav1.Condition{Type: ConditionFinished, Status: metav1.ConditionTrue, LastTransitionTime: noon}
	undated, undone := ended, ended
	undated.LastTransitionTime, undone.Status = metav1.Time{}, metav1.ConditionFalse
	for what, c := range map[string]struct {
		phase RunPhase
		said  []metav1.Condition
		goes  bool
	}{
		"it has ended":             {RunCompleted, []metav1.Condition{ended}, true},
		"it does not say so":       {RunCompleted, nil, false},
		"it does not say when":     {RunFailed, []metav1.Condition{undated}, false},
		"it says that it has not":  {RunFailed, []metav1.Condition{undone}, false},
		"it says so while it runs": {RunRunning, []metav1.Condition{ended}, false},
	} {
		run := &Run{Status: RunStatus{Phase: c.phase, Conditions: c.said}}
		if at, goes := run.ExpiresAt(time.Hour); goes != c.goes || goes && !at.Equal(noon.Add(time.Hour)) {
			t.Errorf("%s: it goes at %s: %v, want %v", what, at, goes, c.goes)
		}
	}
}
