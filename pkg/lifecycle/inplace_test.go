package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// TestWhatRanksOfAFailedRunHavePrintedStays: they are ended where they are, if a kubelet is there to do it, in the time
// that they have; who has not ended by then is deleted.
func TestWhatRanksOfAFailedRunHavePrintedStays(t *testing.T) {
	told := func(by time.Time) func(*Observed) {
		return func(o *Observed) {
			seconds := int64(rank.EndsNow)
			o.Pods[1].Spec.ActiveDeadlineSeconds, o.Pods[1].Spec.TerminationGracePeriodSeconds = &seconds, new(int64(120))
			o.Pods[1].Annotations = map[string]string{rqv1.AnnotationEndsBy: by.Format(time.RFC3339)}
		}
	}
	for name, c := range map[string]struct {
		pod   string
		edit  func(*Observed)
		want  string
		after time.Duration
	}{
		"it runs": {pod: "n1", want: "ends by 12:00:00"},
		"it has time": {pod: "n1", want: "ends by 12:02:00",
			edit: func(o *Observed) { o.Pods[1].Spec.TerminationGracePeriodSeconds = new(int64(120)) }},
		"it has more time than is allowed": {pod: "n1", want: "is deleted with 600 s",
			edit: func(o *Observed) { o.Pods[1].Spec.TerminationGracePeriodSeconds = new(int64(3600)) }},
		"it has been told":                 {pod: "n1", edit: told(noon.Add(30 * time.Second)), after: time.Minute},
		"it has been told and should have": {pod: "n1", edit: told(noon.Add(-20 * time.Second)), after: 10 * time.Second},
		"it has been told and has not": {pod: "n1", edit: told(noon.Add(-30 * time.Second)),
			want: "is deleted with 1 s", after: 5 * time.Second}, // once again if it is still there then
		"it has been told, and its Run is deleted": {pod: "n1", want: "is deleted with 20 s", edit: func(o *Observed) {
			told(noon.Add(20 * time.Second))(o)
			o.Run.DeletionTimestamp = &metav1.Time{Time: noon}
		}},
		"it has printed nothing": {pod: "n1 Pending", want: "is deleted"},
		"it is not bound":        {pod: "-", want: "is deleted"},
		"it has ended":           {pod: "n1 Failed"},
		"its node is lost": {pod: "n1", want: "is deleted",
			edit: func(o *Observed) { o.Nodes["n1"] = book.NodeState{} }},
	} {
		o := scene(func(o *Observed) {
			o.pods("n0 Failed", c.pod, "n2 Failed", "n3 Failed")
			o.Run.Status.Phase = rqv1.RunFailed
			if c.edit != nil {
				c.edit(o)
			}
		})
		d, got := Decide(o), ""
		if at := slices.IndexFunc(d.Delete, func(d Deletion) bool { return d.Pod == o.Pods[1] }); at >= 0 {
			switch del := d.Delete[at]; {
			case !del.By.IsZero():
				got = "ends by " + del.By.Format(time.TimeOnly)
			case del.GraceSeconds != nil:
				got = fmt.Sprintf("is deleted with %d s", *del.GraceSeconds)
			default:
				got = "is deleted"
			}
		}
		if got != c.want || c.after > 0 && d.After != c.after {
			t.Errorf("%s: it %s, and is looked at after %s; want that it %s, after %s", name, got, d.After, c.want, c.after)
		}
	}
}

// TestWhoIsEndedWithItsRunIsNotToBlame: its end is the scheduler's doing, and no death that the status tells of.
func TestWhoIsEndedWithItsRunIsNotToBlame(t *testing.T) {
	o := scene(func(o *Observed) {
		o.pods("n0 Failed", "n1 Failed", "n2 Failed", "n3 Failed")
		o.leases(time.Hour, everywhere())
		o.Run.Status.Phase = rqv1.RunFailed
		for _, pod := range o.Pods[1:] {
			seconds := int64(rank.EndsNow)
			pod.Spec.ActiveDeadlineSeconds, pod.Status.Reason = &seconds, "DeadlineExceeded"
			pod.Annotations = map[string]string{rqv1.AnnotationEndsBy: noon.Format(time.RFC3339)}
		}
	})
	d := Decide(o)
	var got []string
	for _, c := range d.Close {
		got = append(got, fmt.Sprintf("%s %s %s", c.Lease.Name, c.Reason, c.Cause))
	}
	want := []string{"lease-0 Failed Program", "lease-1 Failed Scheduler", "lease-2 Failed Scheduler",
		"lease-3 Failed Scheduler"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d.Status == nil || len(d.Status.Deaths) != 1 || d.Status.Deaths[0].Pod != types.UID("00000000") {
		t.Errorf("the status tells of the deaths %+v", d.Status)
	}
}

// TestWhoIsEndedWithItsRunIsNotLate: who had been told to end before it was to be ready is not blamed for not being so.
func TestWhoIsEndedWithItsRunIsNotLate(t *testing.T) {
	for toldAgo, want := range map[time.Duration]int{5 * time.Second: 1, 15 * time.Second: 0} {
		d := Decide(scene(func(o *Observed) {
			o.pods("n0 Succeeded", "n1", "n2 Succeeded", "n3 Succeeded")
			o.leases(70*time.Second, everywhere())
			o.Run.Spec.Runtime = &rqv1.RunRuntime{StartupDeadline: &metav1.Duration{Duration: time.Minute}}
			o.Run.Status.Phase = rqv1.RunFailed
			seconds, pod := int64(rank.EndsNow), o.Pods[1]
			pod.Spec.ActiveDeadlineSeconds, pod.Spec.TerminationGracePeriodSeconds = &seconds, new(int64(120))
			by := noon.Add(2*time.Minute - toldAgo)
			pod.Annotations = map[string]string{rqv1.AnnotationEndsBy: by.Format(time.RFC3339)}
		}))
		got := 0
		if d.Status != nil {
			got = len(d.Status.Deaths)
		}
		if got != want {
			t.Errorf("told %s ago: the status tells of %d deaths, want %d: %+v", toldAgo, got, want, d.Status)
		}
	}
}
