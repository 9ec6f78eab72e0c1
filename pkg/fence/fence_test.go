package fence

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestFence has clients do what changes something, and what does not, while this process leads and while it does not.
func TestFence(t *testing.T) {
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"metadata": {"name": "x"}}`))
	}))
	t.Cleanup(server.Close)
	var leads atomic.Bool
	open := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	kube, err := kubernetes.NewForConfig(Around(open, leads.Load))
	if err != nil {
		t.Fatal(err)
	}
	ctx, pods, leases := t.Context(), kube.CoreV1().Pods("ns"), kube.CoordinationV1().Leases("ns")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for name, test := range map[string]struct {
		do     func() error
		always bool
	}{
		"get":    {func() error { _, err := pods.Get(ctx, "x", metav1.GetOptions{}); return err }, true},
		"list":   {func() error { _, err := pods.List(ctx, metav1.ListOptions{}); return err }, true},
		"create": {func() error { _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); return err }, false},
		"update": {func() error { _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); return err }, false},
		"patch": {func() error {
			_, err := pods.Patch(ctx, "x", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		}, false},
		"delete": {func() error { return pods.Delete(ctx, "x", metav1.DeleteOptions{}) }, false},
		"bind": {func() error {
			return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		}, false},
		"stand for election": {func() error {
			_, err := leases.Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.UpdateOptions{})
			return err
		}, true},
	} {
		for _, leading := range []bool{false, true, false} {
			leads.Store(leading)
			sent.Store(0)
			err := test.do()
			passes := leading || test.always
			if refused := errors.Is(err, ErrNotLeading); refused == passes || passes && err != nil {
				t.Errorf("%s, leading %v: %v", name, leading, err)
			}
			if got := sent.Load() == 1; got != passes {
				t.Errorf("%s, leading %v: sent: %v", name, leading, got)
			}
		}
	}
	if open.WrapTransport != nil {
		t.Error("the configuration that was given is fenced as well")
	}
}
