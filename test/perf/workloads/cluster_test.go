package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// teams share the fleet, each with a Budget of its own, and the Runs among them.
const teams = 10

// installCRDs serves the four kinds.
func installCRDs(tCtx ktesting.TContext) error {
	config := rest.CopyConfig(tCtx.RESTConfig())
	config.ContentType = runtime.ContentTypeJSON
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths:              []string{"../../../manifests/crd"},
		ErrorIfPathMissing: true,
	})
	return err
}

func team(i int) rqv1.Owner { return rqv1.Owner(fmt.Sprintf("org:team-%d", i%teams)) }

// createBudgets gives every team an equal part of the fleet's GPUs.
func createBudgets(ctx context.Context, c client.Client, nodes []corev1.Node) error {
	var gpus int64
	for _, node := range nodes {
		room := node.Status.Allocatable[gpuResource]
		gpus += room.Value()
	}
	for i := range teams {
		budget := &rqv1.Budget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)},
			Spec: rqv1.BudgetSpec{
				Owner:     team(i),
				Envelopes: []rqv1.Envelope{{Name: "h100", Flavor: "H100-80GB", Concurrency: int32(gpus / teams)}},
			},
		}
		if err := c.Create(ctx, budget); err != nil {
			return fmt.Errorf("creating a Budget: %w", err)
		}
	}
	return nil
}

// warmUp waits until a Run of one pod is bound, in a namespace that is not measured: only then does the scheduler,
// which starts before the CRDs exist, know the kinds and the Nodes.
func warmUp(tCtx ktesting.TContext, c client.Client, template *rqv1.Run) error {
	run := newRun(template, "warm-up", 0, 1)
	run.Namespace = metav1.NamespaceDefault
	if err := c.Create(tCtx, run); err != nil {
		return fmt.Errorf("creating the first Run: %w", err)
	}
	ofRun := metav1.ListOptions{LabelSelector: rqv1.LabelRun + "=" + run.Name}
	bound := func(ctx context.Context) (bool, error) {
		pods, err := tCtx.Client().CoreV1().Pods(run.Namespace).List(ctx, ofRun)
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Spec.NodeName != "", err
	}
	if err := wait.PollUntilContextTimeout(tCtx, 100*time.Millisecond, 2*time.Minute, true, bound); err != nil {
		return fmt.Errorf("waiting for the first Run's pod to be bound: %w", err)
	}
	return nil
}
