package controllers

import (
	"context"
	"encoding/json"
	"errors"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// writers is how many API writes of one Run, or of one look at others, are under way at once.
const writers = 16

// inParallel runs n API writes, several at a time, and returns their errors together.
func inParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(writers)
	errs := make([]error, n)
	for i := range n {
		group.Go(func() error { errs[i] = do(i); return nil })
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// ignore returns nil for errors of the given kinds.
func ignore(err error, kinds ...func(error) bool) error {
	for _, is := range kinds {
		if is(err) {
			return nil
		}
	}
	return err
}

// made returns what became of making an object. One that has the name already is as good if it is the same Run's, so
// that making it again is harmless: names are the ranks'.
func made[T metav1.Object](ctx context.Context, kind string, wanted T, err error,
	get func(context.Context, string, metav1.GetOptions) (T, error)) error {
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	got, err := get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err != nil {
		return ignore(err, apierrors.IsNotFound)
	}
	run, _ := rank.RunOf(wanted)
	if of, ok := rank.RunOf(got); !ok || of != run {
		return reconcile.NameTaken{Kind: kind, Name: wanted.GetName()}
	}
	return nil
}

// reference returns a Run that events can point at: objects from a watch carry no kind.
func reference(run *rqv1.Run) *rqv1.Run {
	run = run.DeepCopy()
	run.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Run"))
	return run
}

// tellNode makes an event on a node.
func tellNode(events events.EventRecorder, name, kind, reason, message string) {
	about := &corev1.Node{}
	about.APIVersion, about.Kind, about.Name, about.UID = "v1", "Node", name, types.UID(name)
	events.Eventf(about, nil, kind, reason, "Schedule", "%s", message)
}

// patchNode changes a node, if it is there.
func patchNode(ctx context.Context, kube kubernetes.Interface, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err == nil {
		_, err = kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: nodeloss.Writer})
	}
	return ignore(err, apierrors.IsNotFound)
}
