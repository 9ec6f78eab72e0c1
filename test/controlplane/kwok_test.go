package controlplane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// boundPod is a pod that is on a node from the start, so that the test needs no scheduler.
func boundPod(name, node string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName:       node,
			RestartPolicy:  corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "first", Image: "pause"}},
			Containers:     []corev1.Container{{Name: "main", Image: "pause"}},
		},
	}
}

func TestPodsRunAndEndAsAnnotated(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	tests := []struct {
		name, node  string
		annotations map[string]string
		want        corev1.PodPhase
	}{
		{"runs", "played", nil, corev1.PodRunning},
		{"completes", "played", map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1s"}, corev1.PodSucceeded},
		{"fails", "played", map[string]string{"pod-fail.stage.kwok.x-k8s.io/delay": "1s"}, corev1.PodFailed},
		{"lingers", "played", map[string]string{"pod-delete.stage.kwok.x-k8s.io/delay": "2s"}, corev1.PodRunning},
		{"is-not-played", "absent", nil, corev1.PodPending},
	}
	pods := c.client.CoreV1().Pods(metav1.NamespaceDefault)
	for _, test := range tests {
		if _, err := pods.Create(ctx, boundPod(test.name, test.node, test.annotations), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range tests {
		eventually(t, func() error {
			pod, err := pods.Get(ctx, test.name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != test.want {
				err = fmt.Errorf("%s is %s, want %s", test.name, pod.Status.Phase, test.want)
			}
			return err
		})
		if err := pods.Delete(ctx, test.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lingering, err := pods.Get(ctx, "lingers", metav1.GetOptions{})
	if err != nil || lingering.DeletionTimestamp == nil {
		t.Errorf("a pod that takes 2 s to terminate: %v, %v", lingering, err)
	}
	for _, test := range tests[:4] {
		eventually(t, func() error {
			_, err := pods.Get(ctx, test.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s is still there: %w", test.name, err)
		})
	}
}

// A pod is made as soon as another of its name is gone, as whoever replaces one does: it stays.
func TestAPodStaysThatHasTheNameOfOneThatIsGone(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	pods := c.client.CoreV1().Pods(metav1.NamespaceDefault)
	for i := range 20 {
		var made *corev1.Pod
		eventually(t, func() (err error) {
			made, err = pods.Create(ctx, boundPod("again", "played", nil), metav1.CreateOptions{})
			return err
		})
		eventually(t, func() error {
			pod, err := pods.Get(ctx, made.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err), err == nil && (pod.UID != made.UID || pod.DeletionTimestamp != nil):
				t.Fatalf("pod %d is deleted", i)
			case err == nil && pod.Status.Phase != corev1.PodRunning:
				err = fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return err
		})
		if err := pods.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNodesKeepWhatTheFleetSays(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	node, err := c.client.CoreV1().Nodes().Get(ctx, "played", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !ready(node) {
		t.Errorf("not ready: %v, taints %v", node.Status.Conditions, node.Spec.Taints)
	}
	got := map[corev1.ResourceName]string{}
	for name, quantity := range node.Status.Allocatable {
		got[name] = quantity.String()
	}
	want := map[corev1.ResourceName]string{"cpu": "60", "memory": "1Ti", "pods": "200", "nvidia.com/gpu": "7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	eventually(t, func() error {
		_, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "played", metav1.GetOptions{})
		return err
	})
}

func TestBrokenNodeStaysBroken(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	broken := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "broken",
		Annotations: map[string]string{kwokAnnotation: "fake"}}}
	if _, err := c.CreateNodes(ctx, []corev1.Node{broken}); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitNodesReady(ctx, []corev1.Node{broken}); err != nil {
		t.Fatal(err)
	}
	setReady := func(status string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
		_, err := c.client.CoreV1().Nodes().Patch(ctx, "broken", types.StrategicMergePatchType, patch, metav1.PatchOptions{},
			"status")
		if err != nil {
			t.Fatal(err)
		}
	}
	setReady("False")
	// The controller manager reacts to the condition; kwok has seen it by then too and must have left it.
	eventually(t, func() error {
		node, err := c.client.CoreV1().Nodes().Get(ctx, "broken", metav1.GetOptions{})
		if err == nil && len(node.Spec.Taints) == 0 {
			err = fmt.Errorf("no taint on %v", node.Status.Conditions)
		}
		return err
	})
	setReady("Unknown")
	if err := c.WaitNodesReady(ctx, []corev1.Node{broken}); err != nil {
		t.Errorf("kwok does not bring back a node that is Unknown: %v", err)
	}
}

func TestKwokComesBackAtOnce(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	if err := c.Kwok.Kill(); err != nil {
		t.Fatal(err)
	}
	pods := c.client.CoreV1().Pods(metav1.NamespaceDefault)
	create := func(name string) {
		t.Helper()
		if _, err := pods.Create(ctx, boundPod(name, "played", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("early")
	started := time.Now()
	if err := c.StartKwok(ctx); err != nil {
		t.Fatal(err)
	}
	create("late")
	for _, name := range []string{"early", "late"} {
		eventually(t, func() error {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodRunning {
				err = fmt.Errorf("%s is %s", name, pod.Status.Phase)
			}
			return err
		})
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// Node leases last 40 s; waiting for one to expire would show.
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the pods ran after %v", took)
	}
}

// TestKwokEndsOnlyWhatGoes: a pod that has not been told to go is another of the name that kwok was to end.
func TestKwokEndsOnlyWhatGoes(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	pods := c.client.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(ctx, boundPod("another", "absent", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, stderr, err := c.Kubectl(ctx, "delete", "pod", "another", "--dry-run=server", "--as="+kwokUser,
			"--as-group=system:masters")
		if err == nil || !strings.Contains(stderr, "it is another of the name") {
			return fmt.Errorf("kwok may delete it: %v: %s", err, stderr)
		}
		return nil
	})
	if err := pods.Delete(ctx, "another", *metav1.NewDeleteOptions(0)); err != nil {
		t.Error(err)
	}
}
