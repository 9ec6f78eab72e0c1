// Package fleet makes what cases of test/perf share that measure the scheduler's own process: a control plane of real
// processes, nodes that kwok plays, and a namespace to submit Runs to.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

const (
	// Flavor is that of all GPUs, and resourceName the resource by which they are asked for.
	Flavor       = "H100-80GB"
	resourceName = "nvidia.com/gpu"
	// Scheduler is the name of the scheduler's process.
	Scheduler = "jobtree-scheduler"
	// patience is how long a fleet may take to be ready.
	patience = 2 * time.Minute
)

// Lab is a control plane, with clients that have all rights.
type Lab struct {
	Plane *controlplane.ControlPlane
	Kube  kubernetes.Interface
	API   client.WithWatch
}

// With starts a control plane, with the scheduler or without, has something done with it and stops it. The scheduler's
// log is copied to log.
func With(ctx context.Context, scheduler bool, log string, do func(context.Context, *Lab) error) (err error) {
	dir, err := os.MkdirTemp("", "jobtree-perf-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	plane, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, Scheduler: scheduler, Kwok: true})
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel() // nobody is to miss the API server that stops
		plane.Stop()
		text, unread := os.ReadFile(filepath.Join(dir, "logs", Scheduler+".log"))
		err = errors.Join(err, unread, os.WriteFile(log, text, 0o644))
	}()
	l := &Lab{Plane: plane}
	if l.Kube, err = kubernetes.NewForConfig(plane.AdminConfig()); err != nil {
		return err
	}
	if l.API, err = controllers.NewClient(plane.AdminConfig()); err != nil {
		return err
	}
	return do(ctx, l)
}

// Node is a node that kwok plays, with so many GPUs, in a fast-fabric domain.
func Node(name, domain string, gpus int64) corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), resourceName: *resource.NewQuantity(gpus, resource.DecimalSI),
	}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"region": "region-0", "cluster": "cluster-0", "fabric.domain": domain, "gpu.flavor": Flavor,
				corev1.LabelHostname: name,
			},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// Load creates nodes and waits until they are ready.
func (l *Lab) Load(ctx context.Context, nodes []corev1.Node) error {
	created, err := l.Plane.CreateNodes(ctx, nodes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.Plane.WaitNodesReady(ctx, created)
}

// Namespace makes a namespace and waits until pods can be made in it: its service account is there.
func (l *Lab) Namespace(ctx context.Context, name string) error {
	if _, err := l.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := l.Kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// InTurn takes steps one after the other until one fails. The error says what was being made.
func InTurn(ctx context.Context, making string, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("making the %s: %w", making, err)
		}
	}
	return nil
}
