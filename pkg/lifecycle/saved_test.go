package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

func says(o metav1.Object, word string) {
	o.SetAnnotations(map[string]string{rqv1.AnnotationSavedAt: word})
}

// TestSinceWhenWorkIsLost is about a Run of four ranks that started an hour before noon and loses rank 1 at noon.
func TestSinceWhenWorkIsLost(t *testing.T) {
	lost := func(edit func(*Observed)) Observed {
		return scene(func(o *Observed) {
			o.pods("n0", "n1 Failed", "n2", "n3")
			started(o)
			o.Nodes["n1"] = book.NodeState{}
			edit(o)
		})
	}
	for name, c := range map[string]struct {
		observed Observed
		since    time.Duration // before noon
		others   int32
	}{
		"nothing was saved": {lost(func(*Observed) {}), time.Hour, 24},
		"it declares a checkpoint": {lost(func(o *Observed) {
			o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 10 * time.Minute}}
		}), 10 * time.Minute, 24},
		"the Run says when it saved": {lost(func(o *Observed) { says(o.Run, "2026-03-01T11:40:00Z") }), 20 * time.Minute, 24},
		"its rank does": {lost(func(o *Observed) {
			says(o.Run, "2026-03-01T11:40:00Z")
			says(o.Pods[1], "2026-03-01T12:50:00+01:00")
		}), 10 * time.Minute, 24},
		"it says what is no time": {lost(func(o *Observed) { says(o.Run, "just now") }), time.Hour, 24},
		"it says what is to come": {lost(func(o *Observed) { says(o.Run, "2026-03-01T13:00:00Z") }), time.Hour, 24},
		"another rank came later": {lost(func(o *Observed) {
			o.Leases[0].Spec.Start = metav1.NewMicroTime(noon.Add(-5 * time.Minute))
		}), 5 * time.Minute, 24},
		"another was lost just before": {lost(func(o *Observed) {
			o.LastLoss, o.Leases = noon.Add(-2*time.Minute), o.Leases[:3]
		}), 2 * time.Minute, 16},
	} {
		d := Decide(c.observed)
		if len(d.Close) != 1 {
			t.Fatalf("%s: %s", name, story(d))
		}
		got := d.Close[0]
		if since := noon.Sub(got.LostSince); since != c.since || got.Others != c.others {
			t.Errorf("%s: lost since %s before noon with %d others, want %s with %d", name, since, got.Others, c.since, c.others)
		}
	}
}

// TestWhatCannotBeTrueIsTold by a condition, which goes when it is.
func TestWhatCannotBeTrueIsTold(t *testing.T) {
	observed := scene(func(o *Observed) {
		o.pods("n0", "n1", "n2", "n3")
		started(o)
		says(o.Run, "yesterday")
		says(o.Pods[2], "2027-03-01T12:00:00Z")
	})
	c := meta.FindStatusCondition(Decide(observed).Status.Conditions, rqv1.ConditionSaveIgnored)
	want := `annotation rq.davidlangworthy.io/saved-at is ignored: on the Run "yesterday" is not a time ` +
		"such as 2026-03-01T12:00:00Z; on pod run-2 2027-03-01T12:00:00Z is in the future"
	if c == nil || c.Status != metav1.ConditionTrue {
		t.Fatalf("nothing is told: %+v", c)
	}
	if diff := cmp.Diff(want, c.Message); diff != "" {
		t.Error(diff)
	}
}

// TestWhoIsDoneEndsAtOnce once it has been told to go.
func TestWhoIsDoneEndsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		word  string
		given int64
		again bool
	}{
		"done":               {"true", 30, true},
		"not done":           {"false", 30, false},
		"done, and told so":  {"true", 1, false},
		"done, without time": {"true", 0, false},
	} {
		observed := scene(func(o *Observed) {
			o.pods("n0", "n1 deleting", "n2", "n3")
			started(o)
			o.Pods[1].DeletionGracePeriodSeconds = &c.given
			o.Run.Annotations = map[string]string{rqv1.AnnotationTakeMe: c.word}
		})
		deletes := Decide(observed).Delete
		if again := len(deletes) == 1 && *deletes[0].GraceSeconds == atOnce; again != c.again || len(deletes) > 1 {
			t.Errorf("%s: %+v is deleted again", name, deletes)
		}
	}
}
