package plugins

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// inTheWay returns a book in which a Run holds the only node, and the pod of another that waits for it since an
// instant and has a Reservation.
func inTheWay(t *testing.T, node *corev1.Node, since time.Time) (*book.Book, *corev1.Pod) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, key := book.New(args), []byte("key")
	b.AskRules()
	b.SetLotteryKey(key)
	b.SetNode(node)
	b.Budgets.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1},
		Spec: rqv1.BudgetSpec{Owner: "org", Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 16}}}})
	started := metav1.Condition{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(since.Add(-time.Hour))}
	var pods []*corev1.Pod
	for i, status := range []rqv1.RunStatus{
		{Phase: rqv1.RunRunning, Conditions: []metav1.Condition{started}, Width: &rqv1.RunWidth{Granted: 8}},
		{Phase: rqv1.RunPending},
	} {
		name, size, controls := fmt.Sprint("run", i), int32(8), true
		b.SetRun(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1,
			CreationTimestamp: metav1.NewTime(since)}, Status: status,
			Spec: rqv1.RunSpec{Owner: "org", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 8, GPUsPerPod: &size}}})
		pod := rankPod(name+"-0", "8", "1", false)
		pod.UID = types.UID("pod-0000" + fmt.Sprint(i))
		pod.Labels[rqv1.LabelRun], pod.Labels[rqv1.LabelIndex] = name, "0"
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: rqv1.GroupVersion.String(), Kind: "Run", Name: name,
			UID: types.UID(name), Controller: &controls}}
		pods = append(pods, pod)
	}
	holder := pods[0]
	holder.Spec.NodeName, holder.Status.Phase = node.Name, corev1.PodRunning
	b.SetPod(holder)
	b.SetLease(&rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: rank.LeaseName(holder.Name, holder.UID),
		Labels: map[string]string{rqv1.LabelPodUID: string(holder.UID)}},
		Spec: rqv1.LeaseSpec{Owner: "org", RunRef: rqv1.LeaseRunRef{Namespace: "ns", Name: "run0", UID: "run0"},
			PaidByEnvelope: "e", Payer: rqv1.LeasePayer{Budget: "b", Owner: "org"},
			Start: metav1.NewMicroTime(since.Add(-time.Hour)), Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive,
				Nodes: []rqv1.NodeGPUs{{Name: node.Name, GPUs: 8}}}}})
	b.SetMember(holder)
	b.SetMember(pods[1])
	b.SetReservation(&rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run1-r0", UID: "r",
		CreationTimestamp: metav1.NewTime(since), Labels: map[string]string{rqv1.LabelRunUID: "run1"}},
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "run1"}},
		Status: rqv1.ReservationStatus{State: rqv1.ReservationPending,
			Lottery: &rqv1.Lottery{Commitment: resolver.Commitment(resolver.Nonce(key, "r"))}}})
	b.Begin(since)
	return b, pods[1]
}

// turnComes has a Run's turn come on a full node, by a clock that is made for the time at which it does. It returns the
// scheduler's side of that, the Run's leader and how to look at the Run.
func turnComes(t *testing.T, clockAt func(now time.Time) clock.Clock) (pl *Jobtree, pod *corev1.Pod, now time.Time,
	look func() book.Look) {
	t.Helper()
	node := cpuNode("n0")
	since := time.Now().Truncate(time.Second)
	now = since.Add(time.Hour)
	b, pod := inTheWay(t, node, since)
	holder := other("run0-0", "n0", "8", "1")
	holder.UID = "pod-00000"
	snapshot := cache.NewSnapshot([]*corev1.Pod{holder}, []*corev1.Node{node})
	pl = &Jobtree{handle: judges(t, snapshot), book: b, clock: clockAt(now)}
	if _, refusal := b.Place(pod.UID, now); refusal == nil {
		t.Fatal("a Run fits a full node")
	}
	pl.decide(t.Context(), pod, now)
	b.WorkOut("run1", now) // its date has come
	pl.decide(t.Context(), pod, now)
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run1", UID: "run1"}}
	return pl, pod, now, func() book.Look {
		look, _ := b.Look(book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: "run1"}, Run: run})
		return look
	}
}

// TestPlanningTakesNoTimeFromAsking has a Run's turn come, and its plan take longer than other rules may be asked: they
// are asked all the same, and others are cut for the Run.
func TestPlanningTakesNoTimeFromAsking(t *testing.T) {
	_, _, _, look := turnComes(t, func(now time.Time) clock.Clock {
		return testingclock.NewFakeClock(now.Add(longest + time.Second))
	})
	if seen := look(); seen.Activation == nil {
		t.Errorf("nobody is cut: %+v", seen.Refusal)
	}
}

// hurried is a clock on which everything takes its time.
type hurried struct {
	*testingclock.FakeClock
	takes time.Duration
}

func (c hurried) Since(at time.Time) time.Duration {
	c.Step(c.takes)
	return c.FakeClock.Since(at)
}

// TestADecisionThatTakesLongIsMade has other rules take longer to ask than there is time: nobody is cut on what is not
// known, and that is found out in the next cycle.
func TestADecisionThatTakesLongIsMade(t *testing.T) {
	pl, pod, now, look := turnComes(t, func(now time.Time) clock.Clock {
		return hurried{testingclock.NewFakeClock(now), longest + 1}
	})
	if look().Activation != nil {
		t.Fatal("others are cut before it is known what for")
	}
	if why := pl.book.Gate(pod); why != "" {
		t.Errorf("its pod is held back: %s", why)
	}
	if node, refusal := pl.place(t.Context(), pod, now); refusal == nil {
		t.Errorf("its pod goes to %q, where another is", node)
	}
	if seen := look(); seen.Activation == nil {
		t.Errorf("nobody is cut: %+v", seen.Refusal)
	}
}
