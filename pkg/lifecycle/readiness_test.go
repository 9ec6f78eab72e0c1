package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// readies has a pod be ready, or not, from an instant on.
func readies(pod *corev1.Pod, yes corev1.ConditionStatus, at time.Time) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: yes,
		LastTransitionTime: metav1.NewTime(at)}}
}

// wide is a Run of so many pods that runs, each on a node of its own since an hour ago, and whose status says so.
func wide(t *testing.T, pods int) Observed {
	t.Helper()
	o := scene(func(o *Observed) {
		o.Run.Spec.Resources.TotalGPUs = int32(8 * pods)
		o.Demand = plan.Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: pods}
		for i := range pods {
			node := fmt.Sprintf("n%d", i)
			o.Nodes[node] = book.NodeState{Stands: true, Accepts: true}
			pod := o.maker().newRank(i)
			pod.UID, pod.Spec.NodeName, pod.Status.Phase = types.UID(fmt.Sprintf("%08d", i)), node, corev1.PodRunning
			o.Pods = append(o.Pods, pod)
			l := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("lease-%d", i),
				Labels: map[string]string{rqv1.LabelPodUID: string(pod.UID), rqv1.LabelIndex: fmt.Sprint(i)}}}
			l.Spec.Owner, l.Spec.RunRef = "org:a", rqv1.LeaseRunRef{Name: "run", Namespace: "ns", UID: "run-uid"}
			l.Spec.Slice = rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: 8}}}
			l.Spec.Payer.Owner, l.Spec.Start = "org:a", metav1.NewMicroTime(noon.Add(-time.Hour))
			o.Leases = append(o.Leases, l)
		}
	})
	for range 3 {
		if d := Decide(o); d.Status != nil {
			o.Run.Status = *d.Status
		}
	}
	if o.Run.Status.Phase != rqv1.RunRunning || o.Run.Status.Ready != 0 {
		t.Fatalf("the Run is %+v", o.Run.Status)
	}
	return o
}

// A thousand pods become ready one after the other, and each is looked at. The status is written every ten seconds, and
// a last time once all are.
func TestAStatusDoesNotCountEachPodThatIsReady(t *testing.T) {
	o, writes := wide(t, 1000), 0
	var next time.Time // at which it is looked at again
	look := func() {
		d := Decide(o)
		if next = (time.Time{}); d.After > 0 {
			next = o.Now.Add(d.After)
		}
		if d.Status != nil {
			o.Run = o.Run.DeepCopy()
			o.Run.Status = *d.Status
			writes++
		}
	}
	for i, pod := range o.Pods {
		o.Now = noon.Add(time.Duration(i) * 50 * time.Millisecond)
		readies(pod, corev1.ConditionTrue, o.Now.Truncate(time.Second))
		look()
	}
	for range 5 {
		if !next.IsZero() {
			o.Now = next
			look()
		}
	}
	if o.Run.Status.Ready != 1000 || writes > 6 || !next.IsZero() {
		t.Errorf("%d ranks are ready after %d writes, and it is looked at again at %s", o.Run.Status.Ready, writes, next)
	}
	readies(o.Pods[3], corev1.ConditionFalse, o.Now)
	o.Now = o.Now.Add(readyRest)
	if look(); o.Run.Status.Ready != 999 {
		t.Errorf("one is not ready any more, and %d are", o.Run.Status.Ready)
	}
}

// What else changes of a status takes along how many ranks are ready.
func TestAStatusTellsWhoIsReadyWithEverythingElse(t *testing.T) {
	o := wide(t, 4)
	readies(o.Pods[0], corev1.ConditionTrue, o.Now)
	if d := Decide(o); d.Status != nil || d.After != readyRest {
		t.Fatalf("it is written at once (%v), or looked at again after %s", d.Status, d.After)
	}
	o.Run.Generation++
	if d := Decide(o); d.Status == nil || d.Status.Ready != 1 {
		t.Fatalf("the status that is written for another reason is %+v", d.Status)
	}
}

func TestARankThatIsNotReadyInTime(t *testing.T) {
	limit := 20 * time.Minute
	due := noon.Add(-time.Hour).Add(limit) // an hour ago it was bound
	for name, c := range map[string]struct {
		now  time.Time
		edit func(o *Observed, pod *corev1.Pod)
		late bool
	}{
		"before its time is over": {now: due.Add(-time.Second)},
		"when it is":              {now: due, late: true},
		"it has been ready since": {now: due, edit: func(_ *Observed, p *corev1.Pod) {
			readies(p, corev1.ConditionTrue, due.Add(-time.Second))
		}},
		"it was not ready then": {now: noon, late: true, edit: func(_ *Observed, p *corev1.Pod) {
			readies(p, corev1.ConditionFalse, due.Add(-limit))
		}},
		"it was, and is not any more": {now: noon, edit: func(_ *Observed, p *corev1.Pod) {
			readies(p, corev1.ConditionFalse, due.Add(time.Second))
		}},
		"its node's loss is held back": {now: noon, edit: func(o *Observed, _ *corev1.Pod) {
			o.Nodes["n1"] = book.NodeState{Stands: true, HeldBack: true}
		}},
		"it had been told to go before": {now: noon, edit: func(_ *Observed, p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: due.Add(-time.Minute)}
		}},
	} {
		o := wide(t, 4)
		o.Now = c.now
		o.Run.Spec.Runtime = &rqv1.RunRuntime{StartupDeadline: &metav1.Duration{Duration: limit}}
		for i, pod := range o.Pods {
			if i != 1 {
				readies(pod, corev1.ConditionTrue, noon.Add(-time.Hour))
			}
		}
		o.Pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		if c.edit != nil {
			c.edit(&o, o.Pods[1])
		}
		d := Decide(o)
		failed := d.Status != nil && d.Status.Phase == rqv1.RunFailed
		if failed != c.late {
			t.Errorf("%s: failed %v, want %v: %+v", name, failed, c.late, d.Status)
		}
		if !c.late {
			if c.now.Before(due) && d.After != due.Sub(c.now) {
				t.Errorf("%s: it is looked at again after %s", name, d.After)
			}
			continue
		}
		for _, want := range []string{"rank 1 on node n1", "startupDeadline of 20m0s",
			"container main waits: ImagePullBackOff"} {
			if !strings.Contains(d.Status.Message, want) {
				t.Errorf("%s: %q lacks %q", name, d.Status.Message, want)
			}
		}
		want := []rqv1.RunDeath{{Pod: o.Pods[1].UID, Index: 1, Node: "n1", Cause: rqv1.CauseProgram, Sign: ending.NotReady,
			Message: "not ready within its startupDeadline of 20m0s; container main waits: ImagePullBackOff: no such image",
			At:      metav1.NewTime(due)}}
		if diff := cmp.Diff(want, d.Status.Deaths); diff != "" {
			t.Errorf("%s: deaths (-want +got):\n%s", name, diff)
		}
		if !d.TellFirst() || len(d.Delete) != 4 {
			t.Errorf("%s: %d pods go, told first %v", name, len(d.Delete), d.TellFirst())
		}
		o.Run.Status, o.Pods = *d.Status, nil
		for _, closing := range Decide(o).Close {
			cause := rqv1.CauseScheduler
			if closing.Lease.Name == "lease-1" {
				cause = rqv1.CauseProgram
			}
			if closing.Reason != rqv1.ClosedFailed || closing.Cause != cause {
				t.Errorf("%s: %s closes as %s, by the doing of %s", name, closing.Lease.Name, closing.Reason, closing.Cause)
			}
		}
	}
}
