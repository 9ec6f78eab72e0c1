package plugins

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
)

// binder is a handle that binds with a client of its own.
type binder struct {
	*barrier
	kube kubernetes.Interface
}

func (b binder) ClientSet() kubernetes.Interface { return b.kube }

func (b binder) APICacher() fwk.APICacher { return nil }

// TestABindTellsTheWorldSize binds the ranks of a gang and a pod of somebody else.
func TestABindTellsTheWorldSize(t *testing.T) {
	g := newGang(t, 2)
	kube := fake.NewClientset()
	var bound []*corev1.Binding
	kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		bound = append(bound, a.(clienttesting.CreateAction).GetObject().(*corev1.Binding))
		return true, nil, nil
	})
	g.handle = binder{g.barrier, kube}
	for i, pod := range g.pods {
		if status, _ := g.cycle(i); !status.IsSuccess() && status.Code() != fwk.Wait {
			t.Fatal(status)
		}
		if status := g.Bind(context.Background(), nil, pod, g.book.Assigned(pod.UID)); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	for _, b := range bound {
		if diff := cmp.Diff(map[string]string{"rq.davidlangworthy.io/world-size": "2"}, b.Annotations); diff != "" {
			t.Errorf("pod %s (-want +got):\n%s", b.Name, diff)
		}
	}
	if len(bound) != 2 {
		t.Errorf("%d pods are bound, want 2", len(bound))
	}
	if status := g.Bind(context.Background(), nil, &corev1.Pod{}, "n0"); !status.IsSkip() {
		t.Errorf("a pod that is no Run's: %v", status)
	}
}
