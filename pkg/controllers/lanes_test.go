package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// newRuns is how many Runs are new at once.
const newRuns = 1000

func runNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// crowd has as many Runs submitted as newRuns says, all of which are told that there are no GPUs of their type.
func crowd(c *cluster) {
	c.told.Events = nil // nobody reads what is told
	for i := range newRuns {
		c.submit(func(r *rqv1.Run) {
			r.Name, r.UID = fmt.Sprintf("new-%04d", i), types.UID(fmt.Sprintf("new-%d", i))
			r.Spec.Resources.GPUType = "unknown"
		})
	}
	c.see()
}

// works has all workers work until the test ends.
func works(c *cluster) {
	ctx, end := context.WithCancel(context.WithoutCancel(c.t.Context()))
	var all sync.WaitGroup
	for _, l := range lane.All {
		for range l.Workers() {
			all.Go(func() { c.workIn(ctx, l) })
		}
	}
	c.t.Cleanup(func() {
		c.shutDown()
		all.Wait()
		end()
	})
}

// await takes what is heard until it begins with something, and returns what came before.
func await(t *testing.T, heard <-chan string, what string) (before []string) {
	t.Helper()
	for {
		select {
		case got := <-heard:
			if strings.HasPrefix(got, what) {
				return before
			}
			before = append(before, got)
		case <-t.Context().Done():
			t.Fatalf("%s is not written; %d others are", what, len(before))
		}
	}
}

// TestAnEndDoesNotWaitForBeginnings has thousands of Runs begin, none of which gets further than its first write: the
// end of another is recorded all the same, and its room is free. As soon as the API server answers all of them go on.
func TestAnEndDoesNotWaitForBeginnings(t *testing.T) {
	c := newCluster(t)
	c.submit()
	starts(c)
	crowd(c)
	heard, held, until := make(chan string, 10*newRuns), make(chan string, newRuns), make(chan struct{})
	c.heard, c.faults = heard, []fault{{on: "update status runs new-", until: until, held: held}}
	answer := sync.OnceFunc(func() { close(until) })
	defer answer()
	for i := range newRuns {
		c.changed(runNamed(fmt.Sprintf("new-%04d", i)), lane.Begin)
	}
	works(c)
	for range lane.Begins.Workers() / 2 {
		<-held
	}
	c.become(corev1.PodSucceeded, 0, 1)
	c.see()
	for _, o := range c.watches.pods.GetStore().List() {
		c.changed(train, lane.OfPod(o.(*corev1.Pod), false))
	}
	before := await(t, heard, theStatus)
	slices.Sort(before)
	if diff := cmp.Diff(theLeases, before); diff != "" {
		t.Errorf("written before the status that it has ended (-want +got):\n%s", diff)
	}
	if run := c.run(); run.Status.Phase != rqv1.RunCompleted {
		t.Errorf("%s: %s", run.Status.Phase, run.Status.Message)
	}
	if gpus := c.book.GPUsByRole()[rqv1.RoleActive]; gpus > 0 {
		t.Errorf("%d GPUs are held", gpus)
	}
	if n := len(held); n > 0 {
		t.Errorf("%d Runs have begun besides those that every worker of the namespace is busy with", n)
	}
	answer()
	for range newRuns {
		await(t, heard, "update status runs new-")
	}
}

// TestABeginningDoesNotWaitForEnds has a thousand Runs end, none of which gets further than its first write: a new one
// begins all the same.
func TestABeginningDoesNotWaitForEnds(t *testing.T) {
	c := newCluster(t)
	crowd(c)
	c.submit()
	c.see()
	heard, held, until := make(chan string, 10*newRuns), make(chan string, newRuns), make(chan struct{})
	c.heard, c.faults = heard, []fault{{on: "update status runs new-", until: until, held: held}}
	defer close(until)
	for i := range newRuns {
		c.changed(runNamed(fmt.Sprintf("new-%04d", i)), lane.End)
	}
	works(c)
	for range lane.Frees.Workers() / 2 {
		<-held
	}
	c.changed(train, lane.Begin)
	await(t, heard, "create pods train-0")
}

// TestWhatFreesMoreGoesFirst in a lane that it shares.
func TestWhatFreesMoreGoesFirst(t *testing.T) {
	q := newLanes()
	defer q.shutDown()
	for i := range newRuns {
		q.add(runNamed(fmt.Sprintf("ends-%d", i)), lane.End, 0)
		q.add(runNamed(fmt.Sprintf("begins-%d", i)), lane.Begin, 0)
	}
	q.add(runNamed("lost"), lane.Cut, 0)
	q.add(runNamed("bound"), lane.Bind, 0)
	q.add(runNamed("ends-999"), lane.Cut, 0)
	var got []string
	for _, l := range []lane.Lane{lane.Frees, lane.Frees, lane.Frees, lane.Binds, lane.Begins} {
		run, work, _ := q.next(l)
		got = append(got, fmt.Sprintf("%s %d", run.Name, work))
		q.done(run, work)
	}
	want := []string{"lost 4", "ends-999 4", "ends-0 3", "bound 2", "begins-0 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("worked on (-want +got):\n%s", diff)
	}
}

// TestASlowNamespaceStopsNoOther has a thousand Runs of one namespace begin whose pods the API server takes its time
// over, as with a webhook that does not answer: a Run of another namespace begins.
func TestASlowNamespaceStopsNoOther(t *testing.T) {
	q := newLanes()
	defer q.shutDown()
	for i := range newRuns {
		q.add(runNamed(fmt.Sprintf("slow-%d", i)), lane.Begin, 0)
	}
	started, finish := make(chan types.NamespacedName, newRuns), make(chan struct{})
	for range lane.Begins.Workers() {
		go func() {
			for run, work, shutdown := q.next(lane.Begins); !shutdown; run, work, shutdown = q.next(lane.Begins) {
				started <- run
				if run.Namespace == "ns" {
					<-finish
				}
				q.done(run, work)
			}
		}()
	}
	for range lane.Begins.Workers() / 2 {
		<-started
	}
	for _, name := range []string{"a", "b", "c"} {
		other := types.NamespacedName{Namespace: name, Name: "train"}
		q.add(other, lane.Begin, 0)
		if got := <-started; got != other {
			t.Errorf("%s begins before %s", got, other)
		}
	}
	close(finish)
	seen := map[types.NamespacedName]bool{}
	for range newRuns - lane.Begins.Workers()/2 {
		seen[<-started] = true
	}
	if want := newRuns - lane.Begins.Workers()/2; len(seen) != want {
		t.Errorf("%d Runs go on when the API server answers, want %d", len(seen), want)
	}
}

// TestWhoStandsAsideComesByWork that goes first, then in order.
func TestWhoStandsAsideComesByWork(t *testing.T) {
	s := newShares[string](2)
	s.take("ns", "slow", lane.End)
	for _, name := range []string{"a", "b", "c", "a"} {
		s.take("ns", name, lane.End)
	}
	s.take("ns", "c", lane.Cut)
	var got []string
	for next := s.done("ns"); len(next) > 0; next = s.done("ns") {
		got = append(got, next[0].key)
		s.take("ns", next[0].key, next[0].work)
	}
	if want := []string{"c", "a", "b"}; !cmp.Equal(got, want) || s.waiting() > 0 || s.idle != 2 {
		t.Errorf("they come %v, want %v; %d stand aside, %d workers idle", got, want, s.waiting(), s.idle)
	}
}

// TestWhoStandsAsideComesByNamespace where the work goes as soon.
func TestWhoStandsAsideComesByNamespace(t *testing.T) {
	for range 20 {
		s := newShares[string](4)
		s.idle = 0
		for _, namespace := range []string{"d", "b", "a", "c"} {
			s.take(namespace, namespace, lane.End)
		}
		s.idle = 1
		var got []string
		for _, next := range s.done("other") {
			got = append(got, next.key)
		}
		if want := []string{"a", "b", "c", "d"}; !cmp.Equal(got, want) {
			t.Fatalf("they come %v, want %v", got, want)
		}
	}
}

// TestOneWorkerForOneRun at a time, whatever lanes it stands in: what comes up for it meanwhile is done after that.
func TestOneWorkerForOneRun(t *testing.T) {
	q := newLanes()
	defer q.shutDown()
	q.add(train, lane.End, 0)
	run, work, _ := q.next(lane.Frees)
	q.add(train, lane.Begin, 0)
	q.add(runNamed("other"), lane.Begin, 0)
	q.add(train, lane.End, 0)
	q.add(runNamed("other"), lane.End, 0)
	for _, l := range []lane.Lane{lane.Begins, lane.Frees} {
		if other, work, _ := q.next(l); other.Name != "other" {
			t.Fatalf("two work on %s", other)
		} else {
			q.done(other, work)
		}
	}
	for range 3 {
		q.take(train, lane.End)
	}
	if got, want := q.busy[train], []lane.Work{lane.Begin, lane.End}; !cmp.Equal(got, want) {
		t.Errorf("besides %v, want %v: each kind of work once", got, want)
	}
	q.done(run, work)
	for _, l := range []lane.Lane{lane.Frees, lane.Begins} {
		run, work, _ := q.next(l)
		if run != train {
			t.Errorf("%s comes next", run)
		}
		q.done(run, work)
	}
}

// TestARestIsTheRunsOwn: how long a Run rests that fails grows with its failures, in whatever lane, until it goes well.
func TestARestIsTheRunsOwn(t *testing.T) {
	q := newLanes()
	defer q.shutDown()
	other := runNamed("other")
	for _, work := range []lane.Work{lane.End, lane.Begin, lane.Date} {
		q.again(train, work)
		q.lines[work.Lane()].Len() // what is to be added is added
	}
	q.again(other, lane.End)
	q.lines[lane.Frees].Len()
	fails := func(run types.NamespacedName) int { return q.lines[lane.Dates].NumRequeues(run) }
	if got := []int{fails(train), fails(other)}; !cmp.Equal(got, []int{3, 1}) {
		t.Errorf("failures %v", got)
	}
	q.forget(train)
	if got := []int{fails(train), fails(other)}; !cmp.Equal(got, []int{0, 1}) {
		t.Errorf("failures then %v", got)
	}
}
