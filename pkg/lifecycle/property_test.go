package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// told is what is decided, as text.
func told(t *rapid.T, o Observed) string { return text(t, Decide(o), Reserve(o)) }

// text is a decision, and the write of the Reservation, as text, with lists in order.
func text(t *rapid.T, d Decision, w *Write) string {
	slices.SortFunc(d.Delete, func(x, y Deletion) int { return strings.Compare(x.Pod.Name, y.Pod.Name) })
	slices.SortFunc(d.Close, func(x, y Closing) int { return strings.Compare(x.Lease.Name, y.Lease.Name) })
	out, err := json.MarshalIndent([]any{d, w, d.TellFirst()}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestADecisionFollowsFromTheObservation whatever the order of what was observed, and leaves it as it was.
func TestADecisionFollowsFromTheObservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObserved(t)
		before, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		want := told(t, o)
		after, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Fatalf("the observation has changed:\n%s", diff)
		}
		o.Pods = rapid.Permutation(o.Pods).Draw(t, "pods")
		o.Leases = rapid.Permutation(o.Leases).Draw(t, "leases")
		if diff := cmp.Diff(want, told(t, o)); diff != "" {
			t.Fatalf("another order, another decision:\n%s", diff)
		}
	})
}

// TestADecisionIsSound has nothing in a decision contradict the rest of it, or what is there.
func TestADecisionIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObserved(t)
		d := Decide(o)
		pods, named := map[string]*corev1.Pod{}, map[string]bool{}
		for _, pod := range o.Pods {
			pods[string(pod.UID)], named[pod.Name] = pod, true
		}
		deleted := map[string]bool{}
		for _, deletion := range d.Delete {
			if deleted[deletion.Pod.Name] {
				t.Errorf("pod %s is deleted twice", deletion.Pod.Name)
			}
			deleted[deletion.Pod.Name] = true
		}
		for _, pod := range slices.Concat(d.Replace, d.Create) {
			if named[pod.Name] {
				t.Errorf("pod %s is made although there is one of the name", pod.Name)
			}
			named[pod.Name] = true
			if o.Run == nil || o.Run.DeletionTimestamp != nil || o.Run.Ended() || o.Unpaid || o.Run.Suspended() {
				t.Errorf("pod %s is made for a Run that has ended, is suspended, or that nobody pays for", pod.Name)
			}
		}
		for _, closing := range d.Close {
			pod := pods[string(closing.Lease.PodUID())]
			if pod != nil && unfinished(pod) && !rank.NeverRuns(pod) {
				t.Errorf("Lease %s is closed while pod %s holds its GPUs", closing.Lease.Name, pod.Name)
			}
			if closing.Reason == "" {
				t.Errorf("Lease %s is closed without a reason", closing.Lease.Name)
			}
		}
		checkSuspended(t, &o, &d, deleted)
		if d.Status != nil && o.Run.Ended() && d.Status.Phase != o.Run.Status.Phase {
			t.Errorf("a Run that has ended is %s", d.Status.Phase)
		}
	})
}

// TestTheStatusComesToRest has nothing happen but that each status is written: soon there is none to write.
func TestTheStatusComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObserved(t)
		var statuses []*rqv1.RunStatus
		for range 8 {
			d := Decide(o)
			if d.Status == nil {
				return
			}
			statuses = append(statuses, d.Status)
			o.Run = o.Run.DeepCopy()
			o.Run.Status = *d.Status
		}
		last := len(statuses) - 1
		t.Fatalf("the status changes for ever (-last +next):\n%s", cmp.Diff(statuses[last-1], statuses[last]))
	})
}

// checkSuspended asserts that a suspended Run gives up all of its pods, waits, and is promised nothing.
func checkSuspended(t *rapid.T, o *Observed, d *Decision, deleted map[string]bool) {
	if o.Run == nil || o.Run.DeletionTimestamp != nil || !o.Run.Suspended() {
		return
	}
	next := &o.Run.Status
	if d.Status != nil {
		next = d.Status
	}
	if next.Phase != rqv1.RunPending && next.Phase != rqv1.RunCompleted && next.Phase != rqv1.RunFailed {
		t.Errorf("a suspended Run is %s", next.Phase)
	}
	w := Reserve(*o)
	if w != nil && w.Verb == Create {
		t.Errorf("a suspended Run gets a Reservation")
	}
	if next.Phase != rqv1.RunPending {
		return
	}
	if !meta.IsStatusConditionTrue(next.Conditions, rqv1.ConditionSuspended) || next.PendingReservation != "" ||
		next.Queue != nil || next.Refusal != nil || next.Ready != 0 {
		t.Errorf("a suspended Run is told to be %+v", next)
	}
	for _, pod := range o.Pods {
		if run, _, ok := rank.Membership(pod); ok && run == o.Run.UID && active(pod) && !deleted[pod.Name] {
			t.Errorf("pod %s of a suspended Run stays", pod.Name)
		}
	}
}
