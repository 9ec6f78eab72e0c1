package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

const year = int64(365 * 24 * 60 * 60)

// withGrace gives the scene's Run a template that asks for a grace period; none when it is negative.
func withGrace(o *Observed, seconds int64) {
	o.Run.Spec.Template = &corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "train"}}}}
	if seconds >= 0 {
		o.Run.Spec.Template.Spec.TerminationGracePeriodSeconds = &seconds
	}
}

func TestPodsAreMadeWithACappedGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		asked, want int64
		cap         time.Duration
		told        string
	}{
		"more than the cap": {asked: year, want: 600, cap: 10 * time.Minute,
			told: "spec.template.spec.terminationGracePeriodSeconds is 31536000; the Run's pods have 600, the most that this " +
				"scheduler allows (maxGracePeriod)"},
		"the cap":                   {asked: 600, want: 600, cap: 10 * time.Minute},
		"less than the cap":         {asked: 0, want: 0, cap: 10 * time.Minute},
		"none":                      {asked: -1, want: 30, cap: 10 * time.Minute},
		"none, and less by the cap": {asked: -1, want: 5, cap: 4500 * time.Millisecond},
		"more than a cap of less than": {asked: 30, want: 1, cap: time.Second,
			told: "spec.template.spec.terminationGracePeriodSeconds is 30; the Run's pods have 1, the most that this " +
				"scheduler allows (maxGracePeriod)"},
	} {
		o := scene(func(o *Observed) { withGrace(o, test.asked); o.MaxGracePeriod = test.cap })
		d := Decide(o)
		for _, pod := range d.Create {
			if got := graceOf(&pod.Spec); got != test.want {
				t.Errorf("%s: pod %s has %d seconds, want %d", name, pod.Name, got, test.want)
			}
		}
		told := ""
		if d.Status != nil {
			if c := meta.FindStatusCondition(d.Status.Conditions, rqv1.ConditionGraceCapped); c != nil &&
				c.Status == metav1.ConditionTrue {
				told = c.Message
			}
		}
		if told != test.told {
			t.Errorf("%s: the Run says %q, want %q", name, told, test.told)
		}
	}
}

// A condition of before stands no longer than what it says.
func TestTheConditionGoesWhenTheCapIsRaised(t *testing.T) {
	o := scene(func(o *Observed) { withGrace(o, 900); o.pods("n0", "n1", "n2", "n3"); started(o) })
	o.Run.Status = *Decide(o).Status
	if meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionGraceCapped) == nil {
		t.Fatal("the Run does not say that its grace period is capped")
	}
	o.MaxGracePeriod = time.Hour
	if c := meta.FindStatusCondition(Decide(o).Status.Conditions, rqv1.ConditionGraceCapped); c != nil {
		t.Errorf("the Run still says %s", c.Message)
	}
}

// Pods of before there was a cap, and those that somebody else told to go and gave longer, end in time too, whatever
// ends them.
func TestNoPodIsGivenLongerThanTheCap(t *testing.T) {
	asking := func(o *Observed) {
		for _, pod := range o.Pods {
			pod.Spec.TerminationGracePeriodSeconds = new(year)
		}
	}
	running := func(edit func(*Observed)) Observed {
		return scene(func(o *Observed) {
			o.pods("n0", "n1", "n2", "n3")
			started(o)
			o.Run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
			asking(o)
			edit(o)
		})
	}
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"a Run that is over its maxDuration": {running(func(o *Observed) {
			o.Run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Minute}}
		}), "run-0 600s, run-1 600s, run-2 600s, run-3 600s"},
		"a Run that is drawn": {running(func(o *Observed) { o.Cuts = []rank.Cut{cut(rqv1.CutLottery, nil)} }),
			"run-0 600s, run-1 600s, run-2 600s, run-3 600s"},
		"a Run that is drawn, with a longer notice": {running(func(o *Observed) {
			o.Cuts, o.NoticePeriod = []rank.Cut{cut(rqv1.CutLottery, nil)}, time.Hour
		}), "run-0 3600s, run-1 3600s, run-2 3600s, run-3 3600s"},
		"a Run that is deleted": {running(func(o *Observed) { o.Run.DeletionTimestamp = &metav1.Time{Time: noon} }),
			"run-0 600s, run-1 600s, run-2 600s, run-3 600s"},
		"a Run that is gone": {running(func(o *Observed) { o.Run = nil }), "run-0 600s, run-1 600s, run-2 600s, run-3 600s"},
		"a Run that has failed": {
			running(func(o *Observed) { o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "it broke"} }),
			"run-0 600s, run-1 600s, run-2 600s, run-3 600s"},
		"a pod that somebody has told to go": {running(func(o *Observed) {
			o.Pods[1].DeletionTimestamp, o.Pods[1].DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(time.Hour)},
				new(int64(3600))
			o.Pods[2].DeletionTimestamp, o.Pods[2].DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, new(int64(600))
		}), "run-1 600s"},
		"one that has ended": {running(func(o *Observed) {
			o.Pods[1].DeletionTimestamp, o.Pods[1].DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(time.Hour)},
				new(int64(3600))
			o.Pods[1].Status.Phase = corev1.PodSucceeded
		}), ""},
		"one on a lost node, which has none": {running(func(o *Observed) { o.Pods[1].Spec.NodeName = "gone" }), "run-1 own"},
	} {
		var got []string
		for _, d := range Decide(test.observed).Delete {
			switch {
			case d.Notice != nil:
				got = append(got, fmt.Sprintf("%s %ds", d.Pod.Name, d.Notice.GraceSeconds))
			case d.GraceSeconds != nil:
				got = append(got, fmt.Sprintf("%s %ds", d.Pod.Name, *d.GraceSeconds))
			default:
				got = append(got, d.Pod.Name+" own")
			}
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, text, test.want)
		}
	}
}

// Nobody would take the finalizers of a template off its pods.
func TestPodsHaveNoFinalizers(t *testing.T) {
	o := scene(func(o *Observed) { withGrace(o, 0); o.Run.Spec.Template.Finalizers = []string{"example.com/keep"} })
	for _, pod := range Decide(o).Create {
		if len(pod.Finalizers) > 0 {
			t.Errorf("pod %s has finalizers %v", pod.Name, pod.Finalizers)
		}
	}
}

// TestNoGraceOverflows: however long a pod may take to end by what people write, it is not taken for having ended.
func TestNoGraceOverflows(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, seconds := range []int64{600, 9223372037, 1<<63 - 1} {
		gone := metav1.NewTime(now.Add(10 * time.Minute))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &gone, DeletionGracePeriodSeconds: &seconds}}
		if !toldBefore(pod, now.Add(time.Second)) {
			t.Errorf("a pod with %d seconds to end was told to go only after it had been", seconds)
		}
		if d := secondsOf(seconds); d < 0 || d/time.Second != time.Duration(min(seconds, 100*year)) {
			t.Errorf("%d seconds are %v", seconds, d)
		}
	}
}
