package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestPodsOfOthersThatNobodyPaysForAreTold why they wait, each of them, and again when that is another reason: no cycle
// of kube-scheduler looks at them that would tell them. What moves in a sentence is not written each time that it does.
func TestPodsOfOthersThatNobodyPaysForAreTold(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
		for i := range 2 {
			pod := o.maker().newRank(i)
			pod.UID, pod.CreationTimestamp = types.UID(pod.Name), metav1.NewTime(noon)
			pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
			o.Pods = append(o.Pods, pod)
		}
	})
	type word struct{ Pod, Reason, Message string }
	says := func(after time.Duration, r *plan.Refusal, want ...word) {
		t.Helper()
		o.Now, o.Refusal = noon.Add(after), r
		d := Decide(o)
		var got []word
		for _, w := range d.Words {
			got = append(got, word{w.Pod.Name, w.Reason, w.Message})
			w.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: w.Reason, Message: w.Message, LastProbeTime: metav1.NewTime(o.Now)}}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", after, diff)
		}
		if d.After > wordRest {
			t.Errorf("after %s: looked at again in %s", after, d.After)
		}
	}
	both := func(reason, message string) []word {
		return []word{{"run-0", reason, message}, {"run-1", reason, message}}
	}
	short := func(message string) *plan.Refusal {
		return &plan.Refusal{Reason: plan.InsufficientBudget, Message: message}
	}
	room := &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "0 fit now"}
	says(0, room) // kube-scheduler tells them
	says(time.Second, short("short by 8"), both(ReasonNotFunded, "short by 8")...)
	says(2*time.Second, short("short by 8"))
	says(30*time.Second, short("short by 4"))
	says(62*time.Second, short("short by 4"), both(ReasonNotFunded, "short by 4")...)
	says(63*time.Second, room)
	says(72*time.Second, room, both(corev1.PodReasonUnschedulable, "0 fit now")...)
	says(73*time.Second, short("short by 4"))
	says(82*time.Second, short("short by 4"), both(ReasonNotFunded, "short by 4")...)
	for _, pod := range o.Pods {
		pod.Status.Conditions[0].Reason = ReasonNotItsTurn
	}
	says(92*time.Second, room, both(corev1.PodReasonUnschedulable, "0 fit now")...)
	o.Pods[0].Spec.NodeName = "n1"
	says(200*time.Second, short("short by 2"), both(ReasonNotFunded, "short by 2")[1:]...)
	o.Run.Spec.Source, o.Run.Spec.Pods = "", nil
	says(400*time.Second, short("short by 1"))
}

// TestALateRankIsToldWhatItLacks though something else is held against other pods of its Run: of those that came too
// late only what they lack themselves is told, and by a cycle where that is room.
func TestALateRankIsToldWhatItLacks(t *testing.T) {
	for name, c := range map[string]struct {
		reason  plan.Reason
		problem string
		is      string // the reason that it was told before
		want    string
	}{
		"money":                   {reason: plan.InsufficientBudget, want: ReasonNotFunded},
		"money, beside a problem": {reason: plan.InsufficientBudget, problem: "quota", want: ReasonNotFunded},
		"room":                    {reason: plan.InsufficientGPUs},
		"room, beside a problem":  {reason: plan.InsufficientGPUs, problem: "quota"},
		"room by now":             {reason: plan.InsufficientGPUs, is: ReasonNotFunded, want: "Unschedulable"},
		"room by now, beside a problem": {reason: plan.InsufficientGPUs, problem: "quota", is: ReasonNotFunded,
			want: "Unschedulable"},
		"nothing of its own beside a problem": {problem: "quota"},
	} {
		o := scene(func(o *Observed) {
			o.pods("n0", "-", "n2", "n3")
			o.leases(time.Hour, map[int]string{0: "n0", 2: "n2", 3: "n3"})
			o.Run.Status.Phase = rqv1.RunRunning
			o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
			o.Forgone, o.Problem = map[int]types.UID{1: ""}, c.problem
			for _, pod := range o.Pods {
				pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
			}
			if c.is != "" {
				o.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Reason: c.is, LastProbeTime: metav1.NewTime(noon.Add(-time.Hour))}}
			}
			if c.reason != "" {
				o.Refusal = &plan.Refusal{Reason: c.reason, Message: "short by 8", Belated: true}
			}
		})
		got := ""
		for _, w := range Decide(o).Words {
			got += w.Pod.Name + " " + w.Reason + " " + w.Message
		}
		want := ""
		if c.want != "" {
			want = "run-1 " + c.want + " short by 8"
		}
		if got != want {
			t.Errorf("%s: told %q, want %q", name, got, want)
		}
	}
}

// TestALargeGroupIsToldAtAPace however soon it is looked at again.
func TestALargeGroupIsToldAtAPace(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 3 * mostWords / 2 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)}})
	}
	for _, step := range []struct {
		after time.Duration
		why   string
		words int
		again time.Duration
	}{
		{0, "no owner", mostWords, time.Second},
		{0, "no owner", 0, time.Second},
		{time.Second, "no owner", mostWords / 2, 0},
		{2 * time.Second, "no owner", 0, 0},
		{3 * time.Second, "no type", 0, 57 * time.Second},
		{time.Minute, "no type", mostWords, time.Second},
	} {
		now := noon.Add(step.after)
		words, again := NotServed(pods, step.why, now)
		if len(words) != step.words || again != step.again {
			t.Errorf("after %s %d are told that there is %s, want %d, and again after %s, want %s", step.after, len(words),
				step.why, step.words, again, step.again)
		}
		for _, w := range words {
			w.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: w.Reason, Message: w.Message, LastProbeTime: metav1.NewTime(now)}}
		}
	}
}

// TestWhatIsToldForARunIsTakenBack once the Run waits for something else, and not while it is not known for what: no
// autoscaler is to add nodes for pods of a Run that lacks money.
func TestWhatIsToldForARunIsTakenBack(t *testing.T) {
	const room, money = corev1.PodReasonUnschedulable, ReasonNotFunded
	pending := func(reason plan.Reason) *rqv1.Run {
		run := &rqv1.Run{Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
		if reason != "" {
			run.Status.Refusal = &rqv1.RunRefusal{Reason: string(reason)}
		}
		return run
	}
	running := func(lacks rqv1.WidthLacks) *rqv1.Run {
		return &rqv1.Run{Status: rqv1.RunStatus{Phase: rqv1.RunRunning, Width: &rqv1.RunWidth{Lacks: lacks}}}
	}
	for name, c := range map[string]struct {
		run     *rqv1.Run
		is      string
		byCycle bool
		over    bool
	}{
		"the Run lacks money by now":            {run: pending(plan.InsufficientBudget), is: room, over: true},
		"the Run waits for room":                {run: pending(plan.InsufficientGPUs), is: room},
		"the Run waits for room by now":         {run: pending(plan.InsufficientGPUs), is: money, over: true},
		"the Run is new":                        {run: pending(""), is: room},
		"the Run is being made anew":            {is: room},
		"a cycle has said so":                   {is: room, byCycle: true, over: true},
		"the Run that runs lacks room":          {run: running(rqv1.LacksGPUs), is: room},
		"the Run that runs lacks nodes":         {run: running(rqv1.LacksNodes), is: room},
		"the Run that runs lacks money by now":  {run: running(rqv1.LacksMoney), is: room, over: true},
		"the Run that runs lacks nothing to it": {run: running(""), is: room, over: true},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: c.is, LastProbeTime: metav1.NewTime(noon)}}}}
		if c.byCycle {
			pod.Status.Conditions[0].LastProbeTime = metav1.Time{}
		}
		words, _ := NotItsTurn([]*corev1.Pod{pod}, c.run, false, noon.Add(time.Hour))
		if (len(words) > 0) != c.over {
			t.Errorf("%s: it is told %v", name, words)
		}
	}
}

// TestWhoIsTurnedAwayIsToldAtAPace: what moves in a sentence is told a minute later, and another reason after ten
// seconds.
func TestWhoIsTurnedAwayIsToldAtAPace(t *testing.T) {
	pod := &corev1.Pod{}
	for _, step := range []struct {
		after       time.Duration
		reason, why string
		told        bool
		again       time.Duration
	}{
		{0, ReasonNotItsTurn, "short by 8", true, 0},
		{10 * time.Second, ReasonNotItsTurn, "short by 4", false, 50 * time.Second},
		{time.Minute, ReasonNotItsTurn, "short by 4", true, 0},
		{65 * time.Second, ReasonNotFunded, "nobody pays", false, 5 * time.Second},
		{70 * time.Second, ReasonNotFunded, "nobody pays", true, 0},
		{80 * time.Second, ReasonNotFunded, "nobody pays", false, 0},
	} {
		now := noon.Add(step.after)
		words, again := TurnedAway([]*corev1.Pod{pod}, func(*corev1.Pod) (reason, why string) {
			return step.reason, step.why
		}, now)
		if told := len(words) > 0; told != step.told || again != step.again {
			t.Errorf("after %s it is told %q: %v, and looked at again in %s", step.after, step.why, told, again)
		}
		if step.told {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: step.reason, Message: step.why, LastProbeTime: metav1.NewTime(now)}}
		}
	}
}
