package session

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeNamed reads a node. It fails with words for people if there is none.
func NodeNamed(ctx context.Context, c client.Client, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil, Fail(ExitError, `there is no node %s; "kubectl runs nodes" lists the nodes`, name)
	}
	return node, err
}

// Merge makes a change to an object, as a JSON merge patch: nil takes a field away. A uid in it leaves an object alone
// that is another one by now, under the same name.
func Merge(ctx context.Context, c client.Client, object client.Object, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return c.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
}
