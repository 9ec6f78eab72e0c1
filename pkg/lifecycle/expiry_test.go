package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestExpiry has a Run deleted that ended two hours ago, and only if its time is over and nothing of it is left.
func TestExpiry(t *testing.T) {
	ttl := func(seconds int32) func(o *Observed) {
		return func(o *Observed) { o.Run.Spec.TTLSecondsAfterFinished = &seconds }
	}
	asks := func(o *Observed) {
		ttl(60)(o)
		o.AtRest, o.Run.Name, o.Run.Labels = false, "what-if-x7", map[string]string{rqv1.LabelWhatIf: "true"}
		o.Run.Spec.Suspend, o.Run.Status = true, rqv1.RunStatus{Phase: rqv1.RunPending}
		o.Run.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute))
	}
	for name, c := range map[string]struct {
		edit func(o *Observed)
		goes bool
	}{
		"by default after an hour": {func(*Observed) {}, true},
		"by default in two hours":  {func(o *Observed) { o.FinishedRunTTL = 2*time.Hour + time.Second }, false},
		"never by default":         {func(o *Observed) { o.FinishedRunTTL = 0 }, false},
		"at once":                  {ttl(0), true},
		"to the second":            {ttl(7200), true},
		"a second later":           {ttl(7201), false},
		"its own time, never by default": {func(o *Observed) {
			o.FinishedRunTTL = 0
			ttl(60)(o)
		}, true},
		"one that failed":    {func(o *Observed) { o.Run.Status.Phase = rqv1.RunFailed }, true},
		"one that only asks": {asks, true},
		"one that only asks, and not for long": {func(o *Observed) {
			asks(o)
			o.Run.CreationTimestamp = metav1.NewTime(noon.Add(-59 * time.Second))
		}, false},
		"one that has only asked, and is resumed": {func(o *Observed) {
			asks(o)
			o.Run.Spec.Suspend = false
		}, false},
		"one that is suspended and not named as those that ask": {func(o *Observed) {
			asks(o)
			o.Run.Name = "mine"
		}, false},
		"one that is suspended without the label": {func(o *Observed) {
			asks(o)
			o.Run.Labels = nil
		}, false},
		"one that is suspended and says no time": {func(o *Observed) {
			asks(o)
			o.Run.Spec.TTLSecondsAfterFinished = nil
		}, false},
		"one that runs": {func(o *Observed) { o.Run.Status.Phase = rqv1.RunRunning }, false},
		"one whose pods have ended": {func(o *Observed) {
			o.pods("n0 Succeeded")
		}, true},
		"one of whose pods ends yet": {func(o *Observed) {
			o.pods("n0 deleting")
		}, false},
		"one whose Lease is open": {func(o *Observed) {
			o.pods("n0 Succeeded")
			o.leases(time.Hour, map[int]string{0: "n0"})
		}, false},
		"one of which no cache holds all yet": {func(o *Observed) { o.AtRest = false }, false},
		"one that somebody deletes": {func(o *Observed) {
			o.Run.DeletionTimestamp = &metav1.Time{Time: noon}
		}, false},
	} {
		o := scene(nil)
		o.FinishedRunTTL, o.AtRest = time.Hour, true
		ended := metav1.NewTime(noon.Add(-2 * time.Hour))
		o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunCompleted, Conditions: []metav1.Condition{{
			Type: rqv1.ConditionFinished, Status: metav1.ConditionTrue, LastTransitionTime: ended}}}
		c.edit(&o)
		d := Decide(o)
		if d.Status != nil { // the event of that looks again
			if d.Expire {
				t.Errorf("%s: it goes before its status is written", name)
			}
			o.Run.Status = *d.Status
			d = Decide(o)
		}
		if d.Expire != c.goes {
			t.Errorf("%s: it goes: %v", name, d.Expire)
		}
	}
}

// TestDone says of a Run that nobody looks at it any more, and of none for which anything may be left to do.
func TestDone(t *testing.T) {
	o := scene(nil)
	o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunCompleted, ObservedGeneration: o.Run.Generation,
		Width: &rqv1.RunWidth{Max: 32}}
	if !Done(o.Run) {
		t.Error("a Run that has ended is looked at again")
	}
	says := func(condition string) func(r *rqv1.Run) {
		return func(r *rqv1.Run) {
			r.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		}
	}
	for name, edit := range map[string]func(r *rqv1.Run){
		"it runs":                    func(r *rqv1.Run) { r.Status.Phase = rqv1.RunRunning },
		"it is edited":               func(r *rqv1.Run) { r.Generation++ },
		"it is deleted":              func(r *rqv1.Run) { r.DeletionTimestamp = &metav1.Time{Time: noon} },
		"it waits":                   func(r *rqv1.Run) { r.Status.PendingReservation = "r" },
		"it is at risk":              func(r *rqv1.Run) { r.Status.AtRisk = make([]rqv1.RunRisk, 1) },
		"it has GPUs":                func(r *rqv1.Run) { r.Status.Width.Allocated = 8 },
		"it is paid":                 func(r *rqv1.Run) { r.Status.Funding = &rqv1.RunFundingStatus{} },
		"it owes":                    says(rqv1.ConditionOverdraft),
		"its nodes are held back":    says(rqv1.ConditionNodesHeldBack),
		"room is kept for it":        says(rqv1.ConditionRoomKept),
		"it says that it is at risk": says(rqv1.ConditionAtRisk),
	} {
		run := o.Run.DeepCopy()
		if edit(run); Done(run) {
			t.Errorf("nobody looks although %s", name)
		}
	}
}
