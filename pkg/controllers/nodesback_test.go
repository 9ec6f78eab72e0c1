package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// repaired is a node that was lost by a condition which is False by now.
func repaired() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", Annotations: map[string]string{rqv1.AnnotationCordoned: "true",
			rqv1.AnnotationLost: nodeloss.Record(nodeloss.Verdict{Reason: nodeloss.Condition,
				Message: "condition NVSwitchDown is True: 1 of 4"}, noon)}},
		Spec: corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: "NVSwitchDown", Status: corev1.ConditionFalse}}},
	}
}

// TestGiveBack has a node be looked at that is well again by what is cached of it.
func TestGiveBack(t *testing.T) {
	quarantined := repaired()
	quarantined.Annotations["quarantineHealthEventIsCordoned"] = "True"
	sick := repaired()
	sick.Status.Conditions[1].Status = corev1.ConditionTrue
	person := repaired()
	person.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-cordon", Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	for name, test := range map[string]struct {
		stored   *corev1.Node
		after    time.Duration // since it was seen to be well
		held     bool          // it still holds something
		conflict bool          // somebody writes it in between
		stands   bool          // what does not lead writes nothing
		back     bool
		again    int // how often it is to be looked at again after retryNode
	}{
		"well":                         {stored: repaired(), after: 5 * time.Second, back: true},
		"well since a moment ago":      {stored: repaired(), after: 4 * time.Second},
		"well, and held":               {stored: repaired(), after: 5 * time.Second, held: true},
		"sick, says the API server":    {stored: sick, after: 5 * time.Second},
		"in quarantine by now":         {stored: quarantined, after: 5 * time.Second},
		"cordoned by a person":         {stored: person, after: 5 * time.Second},
		"gone, says the API server":    {after: 5 * time.Second},
		"written by another meanwhile": {stored: repaired(), after: 5 * time.Second, conflict: true, again: 1},
		"while another leads":          {stored: repaired(), after: 5 * time.Second, stands: true, again: 1},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := config.Parse(nil)
			if err != nil {
				t.Fatal(err)
			}
			kube, clock := fake.NewSimpleClientset(), clocktesting.NewFakeClock(noon)
			if test.stored != nil {
				kube = fake.NewSimpleClientset(test.stored)
			}
			kube.PrependReactor("patch", "nodes", func(core.Action) (bool, runtime.Object, error) {
				return test.conflict, nil, apierrors.NewConflict(corev1.Resource("nodes"), "n", nil)
			})
			recorder := events.NewFakeRecorder(10)
			n := &nodeJudge{book: book.New(args), kube: kube, events: recorder, clock: clock, seen: newNodeWatch(args),
				leads:  func() bool { return !test.stands },
				leases: cache.NewSharedIndexInformer(nil, nil, 0, cache.Indexers{byNode: nodesOf})}
			n.limit = &lossLimit{book: n.book, clock: clock, seen: n.seen}
			queue := &soon{TypedDelayingInterface: n.seen.queue}
			n.seen.queue = queue
			if test.held {
				if err := n.leases.GetStore().Add(closed("b", "held")); err != nil {
					t.Fatal(err)
				}
			}
			n.seen.see(repaired(), noon)
			n.seen.contact.hear(true, noon)
			clock.SetTime(noon.Add(test.after))
			n.judge(t.Context(), []string{"n"})

			back := false
			if stored, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err == nil {
				_, recorded := stored.Annotations[rqv1.AnnotationLost]
				_, cordoned := stored.Annotations[rqv1.AnnotationCordoned]
				if back = !recorded; recorded != stored.Spec.Unschedulable || recorded != cordoned {
					t.Errorf("it is cordoned: %v, its annotations are %v", stored.Spec.Unschedulable, stored.Annotations)
				}
			}
			if back != test.back || len(recorder.Events) != map[bool]int{true: 1}[test.back] {
				t.Errorf("given back %v with %d events, want %v", back, len(recorder.Events), test.back)
			}
			if queue.added != test.again {
				t.Errorf("to be looked at again: %d, want %d", queue.added, test.again)
			}
		})
	}
}

// TestARecordSaysWhoseCordonItIs has a node be lost that somebody had cordoned, or not.
func TestARecordSaysWhoseCordonItIs(t *testing.T) {
	for _, cordoned := range []bool{false, true} {
		node := repaired()
		node.Spec.Unschedulable = cordoned
		delete(node.Annotations, rqv1.AnnotationLost) // what is left of an earlier loss says nothing
		kube := fake.NewSimpleClientset(node)
		n := &nodeJudge{kube: kube, clock: clocktesting.NewFakeClock(noon)}
		f := &finding{node, nodeloss.Verdict{Reason: nodeloss.Condition, Message: "condition NVSwitchDown is True: "}}
		if err := n.recordLoss(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		stored, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, lost := nodeloss.Recorded(stored); !lost || nodeloss.Ours(stored) == cordoned {
			t.Errorf("cordoned before: %v, but lost %v and annotations %v", cordoned, lost, stored.Annotations)
		}
	}
}
