package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// TestAPodGetsOneRank: who offers a pod may not have seen yet that it has its rank, and another pod's is not seen by
// anybody. It keeps its own.
func TestAPodGetsOneRank(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Group", Name: "g"}
	})
	for _, name := range []string{"a", "b", "c", "d"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		o.Offers = append(o.Offers, book.Offer{Pod: pod, Rank: -1})
	}
	ranks := func() map[string]string {
		out := map[string]string{}
		for _, a := range Decide(o).Adopt {
			out[a.Pod.Name] = a.Labels[rqv1.LabelIndex]
		}
		return out
	}
	want := map[string]string{"a": "0", "b": "1", "c": "2", "d": "3"}
	first := Decide(o).Adopt
	if diff := cmp.Diff(want, ranks()); diff != "" {
		t.Fatalf("ranks (-want +got):\n%s", diff)
	}
	seen := first[1].Pod.DeepCopy()
	seen.Labels = first[1].Labels
	o.Pods = append(o.Pods, seen)
	delete(want, "b")
	if diff := cmp.Diff(want, ranks()); diff != "" {
		t.Errorf("once one has been seen with its rank (-want +got):\n%s", diff)
	}
}

// TestAPodThatWaitsInVainIsToldOfItsSpare: nobody makes another that names the spare whose place it is to take.
func TestAPodThatWaitsInVainIsToldOfItsSpare(t *testing.T) {
	waits := func(o *Observed) {
		o.rankLost(1)
		o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
		pod := o.maker().newRank(1)
		pod.UID, pod.CreationTimestamp, pod.Annotations = "again", metav1.NewTime(noon), nil
		pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
		o.Pods = append(o.Pods, pod)
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Group", Name: "g"}
		o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
	}
	d := Decide(spared(waits, "n4", "n5"))
	if len(d.Adopt) != 1 || d.Adopt[0].Pod.UID != "again" {
		t.Fatalf("it is given %+v", d.Adopt)
	}
	told := d.Adopt[0].Pod.DeepCopy()
	told.Annotations = d.Adopt[0].Annotations
	if r, ok := rank.ReplacementOf(told); !ok || r.Spare != "run-s0" || r.Node != "n4" {
		t.Errorf("it is told %v", told.Annotations)
	}
	if again := Decide(spared(func(o *Observed) {
		waits(o)
		o.Pods[slices.IndexFunc(o.Pods, func(pod *corev1.Pod) bool { return pod.UID == "again" })] = told
	}, "n4", "n5")); len(again.Adopt) != 0 {
		t.Errorf("it is told again: %+v", again.Adopt)
	}
}

// TestTheirPodsBeyondTheWidth: a Run that starts with fewer pods than there are gives the others back, grows once as
// many wait as it grows by, and gives no growth up because these were made long ago.
func TestTheirPodsBeyondTheWidth(t *testing.T) {
	theirs := func(o *Observed) {
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Group", Name: "g"}
		for _, pod := range o.Pods {
			pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
		}
	}
	more := func(o *Observed, names ...string) {
		for i, name := range names {
			pod := o.Pods[1].DeepCopy()
			pod.Name, pod.UID, pod.Spec.NodeName = name, types.UID(name), ""
			pod.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
			pod.Labels[rqv1.LabelIndex], pod.Labels[rqv1.LabelCohort] = fmt.Sprint(2+i), "1"
			o.Pods = append(o.Pods, pod)
		}
	}
	offered := func(o *Observed, names ...string) {
		for _, name := range names {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
			o.Offers = append(o.Offers, book.Offer{Pod: pod, Rank: -1})
		}
	}
	d := Decide(breathing(func(o *Observed) { theirs(o); o.GrowTo = 0; more(o, "c", "d") }))
	var released []string
	for _, pod := range d.Release {
		released = append(released, pod.Name)
	}
	if diff := cmp.Diff([]string{"c", "d"}, released); diff != "" || len(d.Delete) > 0 {
		t.Errorf("it is narrower; %d pods are deleted, and released (-want +got):\n%s", len(d.Delete), diff)
	}
	for pods, want := range map[int]bool{0: false, 1: false, 2: true} {
		d := Decide(breathing(func(o *Observed) { theirs(o); offered(o, []string{"c", "d"}[:pods]...) }))
		if grows := d.Status != nil && d.Status.Width.Growing == 32; grows != want {
			t.Errorf("with %d pods that wait it grows: %v", pods, grows)
		}
	}
	d = Decide(breathing(func(o *Observed) {
		theirs(o)
		o.GrowTo, o.Demand.Groups, o.Run.Status.Width.Growing, o.Run.Status.Width.Pending = 0, 2, 32, "Grow to 32"
		more(o, "c", "d")
	}))
	if d.Status != nil && d.Status.Width.Growing == 0 || len(d.Release) > 0 {
		t.Errorf("growth is given up: %+v, %d released", d.Status, len(d.Release))
	}
}

// TestGrowthGoesOnBesideLateRanks: a pod that comes after one that has completed, or too late, is for a rank without
// which the group goes on, and grows. One that is lost comes first.
func TestGrowthGoesOnBesideLateRanks(t *testing.T) {
	for name, late := range map[string]bool{"it is late": true, "its rank is lost": false} {
		d := Decide(breathing(func(o *Observed) {
			o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
			o.GrowTo, o.Demand.Groups, o.Run.Status.Width.Growing, o.Run.Status.Width.Pending = 0, 2, 32, "Grow to 32"
			for i, name := range []string{"c", "d"} {
				pod := o.Pods[1].DeepCopy()
				pod.Name, pod.UID, pod.Spec.NodeName = name, types.UID(name), ""
				pod.Labels[rqv1.LabelIndex], pod.Labels[rqv1.LabelCohort] = fmt.Sprint(2+i), "1"
				o.Pods = append(o.Pods, pod)
			}
			for _, pod := range o.Pods {
				pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
			}
			o.Pods[1].Spec.NodeName, o.Pods[1].Status.Phase = "", corev1.PodPending
			o.Leases = o.Leases[:1]
			if late {
				o.Forgone = map[int]types.UID{1: "before"}
			}
		}))
		if grows := d.Status == nil || d.Status.Width.Growing == 32; grows != late {
			t.Errorf("%s: it grows on: %v", name, grows)
		}
	}
}

// TestPodsThatAreMadeLate: a group that starts without pods which are made later says that it waits for them once they
// have not come for a while. Its deadline counts from when the others are ready, and it says why it starts again.
func TestPodsThatAreMadeLate(t *testing.T) {
	for name, c := range map[string]struct {
		after, ready time.Duration // since its first Lease, and since the others were ready; 0 for those that are not
		says         string
		looks        time.Duration // when it is looked at again
	}{
		"new":       {5 * time.Second, 0, "Waiting: waiting to be placed", 6 * time.Second},
		"not ready": {30 * time.Second, 0, "PodsNotMade: not all of the group's 4 pods have been created", 61 * time.Second},
		"slow":      {5 * time.Minute, 0, "PodsNotMade: ", 61 * time.Second},
		"ready":     {5 * time.Minute, 50 * time.Second, "PodsNotMade: ", 11 * time.Second},
		"ready for long": {5 * time.Minute, 61 * time.Second,
			"DeadlineExceeded: 2 of 4 pods were not created within 1m0s after the others were ready; the Run", 0},
		"slow, and near its end": {10*time.Minute - time.Second, 0, "PodsNotMade: ", 2 * time.Second},
		"never ready": {10*time.Minute + time.Second, 0,
			"DeadlineExceeded: 2 of 4 pods were not created, and not all of the others were ready within 10m0s; the Run", 0},
	} {
		o := scene(func(o *Observed) {
			o.pods("n0", "n1", "", "")
			o.leases(c.after, map[int]string{0: "n0", 1: "n1"})
			o.allLeased()
			o.Run.Spec.Source = rqv1.SourcePods
			o.Run.Spec.Pods = &rqv1.RunPods{Kind: "JobSet", Name: "g", Late: true, First: 2}
			for _, pod := range o.Pods {
				pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
				if c.ready > 0 {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
						LastTransitionTime: metav1.NewTime(noon.Add(-c.ready))}}
				}
			}
		})
		reason, message := storyOf(situationOf(factsOf(o)))
		if got := reason + ": " + message; !strings.HasPrefix(got, c.says) {
			t.Errorf("%s: it says %q, want %q", name, got, c.says)
		}
		if left := Decide(o).After; left != c.looks {
			t.Errorf("%s: it is looked at again after %s, want %s", name, left, c.looks)
		}
	}
	whole := scene(func(o *Observed) {
		o.pods("-", "-", "-", "")
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
		o.Run.Status.Phase = rqv1.RunPending
	})
	if reason, message := storyOf(situationOf(factsOf(whole))); reason != "PodsNotMade" || !strings.Contains(message,
		"holds nothing") {
		t.Errorf("one that waits for all of its pods says %q: %s", reason, message)
	}
	if d := Decide(whole); d.Status == nil || !strings.Contains(d.Status.Message, "holds nothing") {
		t.Errorf("its status is to be %+v", d.Status)
	}
	whole.Run.CreationTimestamp = metav1.NewTime(noon)
	if left := Decide(whole).After; left != 11*time.Second {
		t.Errorf("a new one is looked at again after %s", left)
	}
}

// TestTheRankOfAPodThatNeverRunsIsTheNextOnes: a Job's pods have a finalizer of its controller's, which takes its time.
// A pod that is deleted before it has a node keeps nobody from its completion index.
func TestTheRankOfAPodThatNeverRunsIsTheNextOnes(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{APIGroup: "batch", Kind: "Job", Name: "g"}
	})
	of := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			Finalizers: []string{"batch.kubernetes.io/job-tracking"}}}
	}
	o.Offers = []book.Offer{{Pod: of("was"), Rank: 0}}
	was := of("was")
	was.Labels = Decide(o).Adopt[0].Labels
	o.Pods, o.Offers = []*corev1.Pod{was}, []book.Offer{{Pod: of("is"), Rank: 0}}
	if adopts := Decide(o).Adopt; len(adopts) > 0 {
		t.Errorf("beside a pod that waits another gets its rank: %+v", adopts)
	}
	was.DeletionTimestamp = &metav1.Time{Time: o.Now}
	adopts := Decide(o).Adopt
	if len(adopts) != 1 || adopts[0].Pod.Name != "is" || adopts[0].Labels[rqv1.LabelIndex] != "0" {
		t.Errorf("ranks are given so: %+v, want the first to the next pod", adopts)
	}
}

// TestARunTellsWhichPodKeepsAName that one of its own is to have.
func TestARunTellsWhichPodKeepsAName(t *testing.T) {
	o := scene(nil)
	pod := o.maker().newRank(1)
	pod.UID, pod.DeletionTimestamp = "kept", &metav1.Time{Time: o.Now}
	pod.Finalizers = []string{"example.com/mine", "example.com/yours"}
	o.Pods = []*corev1.Pod{pod}
	const want = "pod run-1 was deleted before it had a node; another of its name can be created once its finalizers " +
		"are taken off: example.com/mine, example.com/yours"
	d := Decide(o)
	if d.Status == nil || d.Status.Message != want {
		t.Errorf("it says %+v, want %s", d.Status, want)
	}
	for _, made := range d.Create {
		if made.Name == pod.Name {
			t.Error("another of its name is made")
		}
	}
}

// TestANameThatNobodyWantsIsNotTold: what the Run waits for is.
func TestANameThatNobodyWantsIsNotTold(t *testing.T) {
	for name, change := range map[string]func(*Observed, *corev1.Pod){
		"beyond its width":              func(_ *Observed, pod *corev1.Pod) { pod.Name = "run-7" },
		"of another than the first one": func(o *Observed, _ *corev1.Pod) { o.Alone = true },
		"while nobody can pay":          func(o *Observed, _ *corev1.Pod) { o.Unpaid = true },
	} {
		o := scene(nil)
		pod := o.maker().newRank(1)
		pod.UID, pod.DeletionTimestamp, pod.Finalizers = "kept", &metav1.Time{Time: o.Now}, []string{"example.com/mine"}
		change(&o, pod)
		o.Pods = []*corev1.Pod{pod}
		o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "too few"}
		if d := Decide(o); d.Status == nil || d.Status.Message != "too few" {
			t.Errorf("%s: it says %+v, want what it waits for", name, d.Status)
		}
	}
}

// TestAPodWhoseBindingIsRefused has its Lease and no node: when its group is taken back it goes with the others, since
// its Lease would be open, and billed, without end. One that has no Lease stays, and waits.
func TestAPodWhoseBindingIsRefused(t *testing.T) {
	refused := func(o *Observed) {
		o.pods("n0", "-", "-", "n3")
		o.leases(2*time.Minute, map[int]string{0: "n0", 1: "n1", 3: "n3"})
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
		for _, pod := range o.Pods {
			pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
		}
		o.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonSchedulerError, Message: `pods "run-1" is forbidden: by the site`}}
	}
	const says = `not every pod could be bound within 1m0s: pods "run-1" is forbidden: by the site; the Run starts again`
	for name, c := range map[string]struct {
		edit func(*Observed)
		want []string
	}{
		"past its deadline": {func(*Observed) {}, []string{"run-0", "run-1", "run-3"}},
		"alone":             {func(o *Observed) { o.Pods = o.Pods[1:3]; o.Leases = o.Leases[1:2] }, []string{"run-1"}},
		"of a Run that is gone": {func(o *Observed) { o.Run = nil },
			[]string{"run-0", "run-1", "run-3"}},
	} {
		d := Decide(scene(func(o *Observed) { refused(o); c.edit(o) }))
		var got []string
		for _, d := range d.Delete {
			got = append(got, d.Pod.Name)
			if d.Tell == "" {
				t.Errorf("%s: %s is not told why it goes", name, d.Pod.Name)
			}
			if name == "past its deadline" && d.Tell != says {
				t.Errorf("%s is told: %s", d.Pod.Name, d.Tell)
			}
		}
		if s := d.Status; name == "past its deadline" && (s == nil || s.Message != says) {
			t.Errorf("its Run says %+v", s)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: pods that go (-want +got):\n%s", name, diff)
		}
	}
}

// TestARefusedBindingIsToldUntilItsPodsAreThereAgain: those that told it go, and their controller may make others late.
func TestARefusedBindingIsToldUntilItsPodsAreThereAgain(t *testing.T) {
	const says = `not every pod could be bound within 1m0s: pods "run-1" is forbidden: by the site; the Run starts again`
	o := scene(func(o *Observed) {
		o.pods("n0", "-", "-", "n3")
		o.leases(2*time.Minute, map[int]string{0: "n0", 1: "n1", 3: "n3"})
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
		for _, pod := range o.Pods {
			pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
		}
		o.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonSchedulerError, Message: `pods "run-1" is forbidden: by the site`}}
	})
	pods := o.Pods
	said := func(when, want string) {
		t.Helper()
		if d := Decide(o); d.Status != nil {
			o.Run = o.Run.DeepCopy()
			o.Run.Status = *d.Status
		}
		if is := o.Run.Status.Message; is != want {
			t.Errorf("%s: it says %s", when, is)
		}
	}
	said("past its deadline", says)
	o.Pods = []*corev1.Pod{pods[0].DeepCopy(), pods[2].DeepCopy()}
	o.Pods[0].DeletionTimestamp = &metav1.Time{Time: noon}
	o.Leases = o.Leases[:1]
	said("one goes", says+"; not all of its pods have been created again")
	o.Pods, o.Leases = o.Pods[1:], nil
	said("they are gone", says+"; not all of its pods have been created again")
	said("that is looked at again", says+"; not all of its pods have been created again")
	o.Pods = nil
	for i := range 4 {
		pod := o.maker().newRank(i)
		pod.UID, pod.Labels[rqv1.LabelSource] = types.UID(pod.Name), string(rqv1.SourcePods)
		o.Pods = append(o.Pods, pod)
	}
	said("they are there again", Waiting)
}

// TestALatePodWhoseBindingIsRefused: a pod of a group that runs is told what it was rejected by when it goes.
func TestALatePodWhoseBindingIsRefused(t *testing.T) {
	for message, want := range map[string]string{
		`pods "run-1" is forbidden: by the site`: "the scheduler ends the pod: it could not be bound within 1m0s: " +
			`pods "run-1" is forbidden: by the site`,
		"": "the scheduler ends the pod: it could not be bound within 1m0s",
	} {
		d := Decide(scene(func(o *Observed) {
			o.Run.Status.Phase = rqv1.RunRunning
			o.pods("n0", "-", "n2", "n3")
			o.leases(2*time.Minute, map[int]string{0: "n0", 1: "n1", 2: "n2", 3: "n3"})
			o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
			for _, pod := range o.Pods {
				pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
			}
			if message != "" {
				o.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Reason: corev1.PodReasonSchedulerError, Message: message}}
			}
		}))
		if len(d.Delete) != 1 || d.Delete[0].Pod.Name != "run-1" {
			t.Fatalf("pods that go: %v", d.Delete)
		}
		if diff := cmp.Diff(want, d.Delete[0].Tell); diff != "" {
			t.Errorf("it is told (-want +got):\n%s", diff)
		}
	}
}
