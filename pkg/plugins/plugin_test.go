package plugins

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

// queue is a scheduling queue that tells what is activated.
type queue struct {
	fwk.Handle
	activated chan map[string]*corev1.Pod
}

func (q *queue) Activate(_ klog.Logger, pods map[string]*corev1.Pod) { q.activated <- pods }

// TestProfilesShareOneBook has one profile's plugin say where a pod goes that the book has given a node through
// another's, and the queue asked once.
func TestProfilesShareOneBook(t *testing.T) {
	b, pod := placed(t)
	factory := NewFactory(b, nil, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q := &queue{activated: make(chan map[string]*corev1.Pod, 2)}
	var profiles []*Jobtree
	for range 2 {
		pl, err := factory(ctx, nil, q)
		if err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, pl.(*Jobtree))
	}
	first, second := profiles[0], profiles[1]
	if result, status := first.PreFilter(ctx, nil, pod, nil); !status.IsSuccess() || !result.NodeNames.Has("n0") {
		t.Fatalf("the first profile: %v, %v", result, status)
	}
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{})
	for name, want := range map[string]bool{"n0": true, "n1": false} {
		info.Node().Name = name
		if status := second.Filter(ctx, nil, pod, info); status.IsSuccess() != want {
			t.Errorf("the second profile about node %s: %v", name, status)
		}
	}
	if first.turnstile != second.turnstile {
		t.Error("each profile binds as many pods at a time as the process may")
	}
	b.Turned(pod.UID, "n0", "for the test")
	select {
	case <-q.activated:
	case <-time.After(time.Minute):
		t.Fatal("nobody carries what the book asks to the queue")
	}
}
