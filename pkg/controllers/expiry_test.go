package controllers

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// endedRun is a Run that ended some seconds before noon and stays for some seconds.
func endedRun(name string, ago, ttl int32) *rqv1.Run {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: rqv1.RunSpec{TTLSecondsAfterFinished: &ttl}}
	run.Status = rqv1.RunStatus{Phase: rqv1.RunCompleted, Conditions: []metav1.Condition{{Type: rqv1.ConditionFinished,
		Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(ago) * time.Second))}}}
	return run
}

// TestRunsAreLookedAtWhenTheirTimeIsOver and not before, as they stand by then.
func TestRunsAreLookedAtWhenTheirTimeIsOver(t *testing.T) {
	var looked []string
	clock := clocktesting.NewFakeClock(noon)
	e := newExpiries(time.Hour, believing(clock), func(run types.NamespacedName) { looked = append(looked, run.Name) })
	passes := func(d time.Duration, want ...string) time.Duration {
		t.Helper()
		looked = nil
		for ; d > longest; d -= longest {
			clock.Step(longest)
			e.expire()
		}
		clock.Step(d)
		next := e.expire()
		for i := 0; i < len(looked); i++ {
			e.looked(types.NamespacedName{Namespace: "ns", Name: looked[i]})
			next = e.expire()
		}
		slices.Sort(looked)
		if diff := cmp.Diff(want, looked); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", clock.Now().Format(time.TimeOnly), diff)
		}
		return next
	}
	passes(0)
	for _, run := range []*rqv1.Run{endedRun("over", 10, 5), endedRun("soon", 0, 10), endedRun("edited", 0, 3600),
		endedRun("kept", 0, 12), endedRun("gone", 0, 11)} {
		e.note(run)
	}
	plain := endedRun("plain", 0, 0)
	plain.Spec.TTLSecondsAfterFinished = nil
	e.note(plain)
	if next := passes(0, "over"); next != 10*time.Second {
		t.Errorf("the next one is over in %s", next)
	}
	e.drop(endedRun("over", 10, 5))
	e.note(endedRun("edited", 0, 11))
	e.note(endedRun("kept", 0, 3600))
	e.drop(endedRun("gone", 0, 11))
	passes(9 * time.Second)
	passes(2*time.Second, "edited", "soon")
	e.drop(endedRun("soon", 0, 10))
	passes(59 * time.Second)
	passes(time.Second, "edited") // it still holds something, or the clock was set back
	e.drop(endedRun("edited", 0, 11))
	passes(59*time.Minute, "kept", "plain")
	never := newExpiries(0, believing(clock), nil)
	if never.note(plain); len(never.of)+len(never.byTime) != 0 {
		t.Error("a Run is to go that stays for ever")
	}
}

// TestAFewRunsGoAtATime however many there are whose time is over, and those that stay are tried ever more seldom.
func TestAFewRunsGoAtATime(t *testing.T) {
	const n = 100
	clock := clocktesting.NewFakeClock(noon)
	var waiting []types.NamespacedName
	e := newExpiries(time.Hour, believing(clock), func(run types.NamespacedName) { waiting = append(waiting, run) })
	for i := range n {
		e.note(endedRun(fmt.Sprint("run", i), 10, 5))
	}
	looks := func() map[string]int {
		t.Helper()
		looked := map[string]int{}
		for e.expire(); len(waiting) > 0; e.expire() {
			if len(waiting) > abreast {
				t.Fatalf("%d Runs are about to be looked at, at once", len(waiting))
			}
			looked[waiting[0].Name]++
			e.looked(waiting[0])
			waiting = waiting[1:]
		}
		return looked
	}
	var at []int
	for minute := range 200 {
		got := looks()
		if len(got) > 0 {
			at = append(at, minute)
		}
		if len(got) != 0 && (len(got) != n || slices.Max(slices.Collect(maps.Values(got))) != 1) {
			t.Errorf("after %d minutes %d are looked at", minute, len(got))
		}
		clock.Step(time.Minute)
	}
	if diff := cmp.Diff([]int{0, 1, 3, 7, 15, 31, 63, 123, 183}, at); diff != "" {
		t.Errorf("looked at after minutes (-want +got):\n%s", diff)
	}
	for i := range n / 2 {
		e.drop(endedRun(fmt.Sprint("run", i), 10, 5)) // is gone
	}
	for range 60 {
		clock.Step(time.Minute)
		e.expire()
	}
	if got := looks(); len(got) != n/2 {
		t.Errorf("%d are looked at that are there", len(got))
	}
}

// TestAClockThatWasAheadPutsNothingOff that is over when it is right again, and has nothing go meanwhile.
func TestAClockThatWasAheadPutsNothingOff(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	var looked []string
	e := newExpiries(time.Hour, believing(clock), func(run types.NamespacedName) { looked = append(looked, run.Name) })
	held, stays := endedRun("held", 10, 5), endedRun("stays", 10, 3600)
	e.note(held)
	e.note(stays)
	look := func(want ...string) {
		t.Helper()
		looked = nil
		e.expire()
		for _, run := range []*rqv1.Run{held, stays} {
			e.looked(client.ObjectKeyFromObject(run))
		}
		if diff := cmp.Diff(want, looked); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", clock.Now(), diff)
		}
	}
	look("held")
	clock.SetTime(noon.AddDate(1, 0, 0))
	look()
	clock.Step(longest)
	look()
	clock.SetTime(noon.Add(time.Second))
	look("held")
	clock.Step(again)
	look("held")
}

// TestAClockThatStaysAheadIsBelieved after a while: it was behind before.
func TestAClockThatStaysAheadIsBelieved(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	looked := 0
	e := newExpiries(time.Hour, believing(clock), func(types.NamespacedName) { looked++ })
	e.note(endedRun("stays", 10, 3600))
	e.expire()
	clock.Step(2 * time.Hour)
	for range doubt / longest {
		if e.expire(); looked > 0 {
			t.Fatal("a Run is looked at as soon as the clock has jumped")
		}
		clock.Step(longest)
	}
	if e.expire(); looked != 1 {
		t.Errorf("looked at %d Runs, want 1", looked)
	}
}

// TestAnEndedRunGoes when its time is over, from whatever process leads then, and its Leases stay.
func TestAnEndedRunGoes(t *testing.T) {
	c := newCluster(t)
	c.submit(func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = new(int32); *r.Spec.TTLSecondsAfterFinished = 60 })
	starts(c)
	c.become(corev1.PodSucceeded, 0, 1)
	play(t, c, []scene{
		{wrote: append(slices.Clone(theLeases), theStatus), says: "Completed: all 2 pods completed"},
		{happens: func(c *cluster) { c.clock.Step(58 * time.Second) }},
		{happens: func(c *cluster) { c.restart() }},
		{happens: func(c *cluster) { c.clock.Step(2 * time.Second) },
			faults: []fault{{on: "delete runs", err: broken500}}},
		{happens: func(c *cluster) { // somebody has just made it stay, and the cache does not know
			c.runsHang = true
			run := c.run()
			*run.Spec.TTLSecondsAfterFinished = 3600
			if err := c.kinds.Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}},
		{happens: func(c *cluster) { c.runsHang = false }},
	})
	c.clock.Step(time.Hour)
	wrote, err := c.look()
	if diff := cmp.Diff([]string{"delete runs train"}, wrote); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := c.kinds.Get(t.Context(), train, &rqv1.Run{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Run is there: %v", err)
	}
	leases := listed[rqv1.LeaseList](c)
	for i := range leases.Items {
		if s := leases.Items[i].Status; !s.Closed || s.ClosureReason != rqv1.ClosedCompleted {
			t.Errorf("Lease %s: %+v", leases.Items[i].Name, s)
		}
	}
	if len(leases.Items) != 2 {
		t.Errorf("%d Leases are left", len(leases.Items))
	}
}

// TestAnEndedRunStaysWhileTheClockIsDoubted although it is looked at for something else, such as one of its pods.
func TestAnEndedRunStaysWhileTheClockIsDoubted(t *testing.T) {
	c := newCluster(t)
	c.submit(func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = new(int32); *r.Spec.TTLSecondsAfterFinished = 3600 })
	starts(c)
	c.become(corev1.PodSucceeded, 0, 1)
	play(t, c, []scene{
		{wrote: append(slices.Clone(theLeases), theStatus), says: "Completed: all 2 pods completed"}})
	c.ended.expire()
	c.clock.Step(2 * time.Hour)
	for range 2 {
		if wrote, err := c.look(); len(wrote) > 0 || err != nil {
			t.Fatalf("written by a clock that has just jumped: %v, %v", wrote, err)
		}
		c.ended.expire()
	}
	for range doubt/longest + 1 {
		c.clock.Step(longest)
		c.ended.expire()
	}
	if wrote, err := c.look(); !slices.Equal(wrote, []string{"delete runs train"}) || err != nil {
		t.Errorf("written by a clock that has stayed ahead: %v, %v", wrote, err)
	}
}

// TestABeginningLooksAtNothingThatIsDone whatever there is of it.
func TestABeginningLooksAtNothingThatIsDone(t *testing.T) {
	c := newCluster(t)
	add := func(in interface{ Add(any) error }, o any) {
		if err := in.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"done", "ends", "leased", "waits", "older"} {
		add(c.watches.runs.GetStore(), endedRun(name, 10, 60))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "0"),
			Labels: map[string]string{rqv1.LabelRun: name, rqv1.LabelRunUID: name}}}
		pod.Status.Phase = corev1.PodSucceeded
		switch name {
		case "ends":
			pod.Status.Phase = corev1.PodRunning
		case "older":
			pod.Labels[rqv1.LabelRunUID] = "another"
		case "leased":
			add(c.watches.leases.GetStore(), &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Spec: rqv1.LeaseSpec{RunRef: rqv1.LeaseRunRef{Namespace: "ns", Name: name}}})
		case "waits":
			r := reserved(rqv1.ReservationPending, "")
			r.Namespace, r.Name, r.Spec.RunRef.Namespace, r.Spec.RunRef.Name = "ns", name, "ns", name
			add(c.watches.reservations.GetStore(), r)
		}
		add(c.watches.pods.GetStore(), pod)
	}
	run := endedRun("runs", 0, 0)
	run.Status.Phase = rqv1.RunRunning
	add(c.watches.runs.GetStore(), run)
	var looked []string
	c.unfinished(func(run types.NamespacedName, _ lane.Work) { looked = append(looked, run.Name) })
	slices.Sort(looked)
	if diff := cmp.Diff([]string{"ends", "leased", "older", "runs", "waits"}, slices.Compact(looked)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
