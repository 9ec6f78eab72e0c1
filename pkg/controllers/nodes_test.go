package controllers

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// TestJudge has a node judged that holds a Lease, by what is cached of it and by what the API server says.
func TestJudge(t *testing.T) {
	node := func(taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	out := node(corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	for name, test := range map[string]struct {
		cached, stored *corev1.Node
		stands, refuse bool // what does not lead judges nothing, and what is not recorded is not so
		lost           bool
		again          int // how many are judged again soon
	}{
		"healthy":                           {cached: node(), stored: node()},
		"out of service":                    {cached: out, stored: out, lost: true},
		"not any more, says the API server": {cached: out, stored: node()},
		"gone, says the API server":         {cached: out},
		"while another leads":               {cached: out, stored: out, stands: true, again: 1},
		"which cannot be recorded":          {cached: out, stored: out, refuse: true, again: 1},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := config.Parse(nil)
			if err != nil {
				t.Fatal(err)
			}
			kube, clock := fake.NewClientset(), clocktesting.NewFakeClock(noon)
			if test.stored != nil {
				kube = fake.NewClientset(test.stored)
			}
			kube.PrependReactor("patch", "nodes", func(core.Action) (bool, runtime.Object, error) {
				return test.refuse, nil, errors.New("away")
			})
			recorder := events.NewFakeRecorder(10)
			limit := &lossLimit{book: book.New(args), clock: clock, seen: newNodeWatch(args)}
			n := &nodeJudge{book: limit.book, kube: kube, events: recorder, clock: clock, seen: limit.seen, limit: limit,
				leads:  func() bool { return !test.stands },
				leases: cache.NewSharedIndexInformer(nil, nil, 0, cache.Indexers{byNode: nodesOf})}
			queue := &soon{TypedDelayingInterface: n.seen.queue}
			n.seen.queue = queue
			if err := n.leases.GetStore().Add(closed("b", "held")); err != nil {
				t.Fatal(err)
			}
			n.book.SetNode(test.cached)
			n.seen.see(test.cached, noon)
			n.seen.contact.hear(true, noon)
			n.judge(t.Context(), []string{"n"})

			recorded := false
			if stored, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err == nil {
				_, recorded = nodeloss.Recorded(stored)
				recorded = recorded && stored.Spec.Unschedulable
			}
			if recorded != test.lost || len(recorder.Events) != map[bool]int{true: 1}[test.lost] {
				t.Errorf("recorded %v with %d events, want %v", recorded, len(recorder.Events), test.lost)
			}
			if queue.added != test.again {
				t.Errorf("to be judged again: %d, want %d", queue.added, test.again)
			}
		})
	}
}

// soon counts what is to be judged again after retryNode.
type soon struct {
	workqueue.TypedDelayingInterface[string]
	added int
}

func (s *soon) AddAfter(_ string, after time.Duration) {
	if after == retryNode {
		s.added++
	}
}
