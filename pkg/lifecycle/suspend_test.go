package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestAResumedRunIsToldItsPlaceFirst: before it has a pod, with which it is planned, its status says that its place is
// later by as long as it was suspended.
func TestAResumedRunIsToldItsPlaceFirst(t *testing.T) {
	created, place := noon.Add(-time.Hour), noon.Add(-20*time.Minute)
	for name, c := range map[string]struct {
		edit    func(o *Observed)
		first   bool
		seconds int64
		since   time.Time
	}{
		"it is resumed": {func(*Observed) {}, true, 600, created.Add(10 * time.Minute)},
		"it was suspended before": {func(o *Observed) { o.Run.Status.SuspendedSeconds = 60 }, true, 660,
			created.Add(11 * time.Minute)},
		"it has the place of another": {func(o *Observed) { o.PlaceSince = &place }, true, 600, place.Add(10 * time.Minute)},
		"it stays suspended":          {func(o *Observed) { o.Run.Spec.Suspend = true }, false, 0, time.Time{}},
		"it was not suspended": {func(o *Observed) { o.Run.Status.Conditions[0].Status = metav1.ConditionFalse }, false, 0,
			time.Time{}},
	} {
		o := scene(func(o *Observed) {
			o.Run.Status.Phase = rqv1.RunPending
			o.Run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionSuspended, Status: metav1.ConditionTrue,
				Reason: "Suspended", LastTransitionTime: metav1.NewTime(noon.Add(-10 * time.Minute))}}
			o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs}
			c.edit(o)
		})
		d := Decide(o)
		if d.Status == nil {
			t.Fatalf("%s: it is told nothing", name)
		}
		var since time.Time
		if d.Status.PlaceSince != nil {
			since = d.Status.PlaceSince.Time
		}
		if d.TellFirst() != c.first || d.Status.SuspendedSeconds != c.seconds || !since.Equal(c.since) {
			t.Errorf("%s: told first %v, %d seconds, place since %v, want %v", name, d.TellFirst(), d.Status.SuspendedSeconds,
				since, c.since)
		}
	}
}

// TestPodsThatAreNotLetGo: a Run whose pods are to go and that the API server does not delete says so, and why, for as
// long as there are any. What else it says stays as it is.
func TestPodsThatAreNotLetGo(t *testing.T) {
	const why = `pods "run-0" is forbidden: protected`
	refused := scene(func(o *Observed) {
		o.pods("n0", "n1", "n2", "n3")
		o.leases(time.Hour, everywhere())
		o.Run.Spec.Suspend = true
		o.Run.Status.Phase, o.Unended = rqv1.RunPending, why
	})
	d := Decide(refused)
	want := whileSuspended + unended + why
	if d.Status == nil || d.Status.Message != want || len(d.Delete) != 4 {
		t.Fatalf("it says %+v, and %d pods go; want %s", d.Status, len(d.Delete), want)
	}
	refused.Run.Status = *d.Status
	if d := Decide(refused); d.Status != nil {
		t.Errorf("it is written again: %s", d.Status.Message)
	}
	refused.Pods, refused.Leases = nil, nil
	if d := Decide(refused); d.Status == nil || d.Status.Message != whileSuspended {
		t.Errorf("once they are gone it says %+v", d.Status)
	}
}
