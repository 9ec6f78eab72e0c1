package controlplane

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestContents has a control plane become as it was after things were made, changed and deleted, among them what its
// controllers answer with, and what a finalizer keeps.
func TestContents(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := Start(ctx, Options{Dir: t.TempDir(), Kwok: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	before, err := c.Contents(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const role = "system:kube-scheduler"
	core, roles := c.client.CoreV1(), c.client.RbacV1().ClusterRoles()
	was, err := roles.Get(ctx, role, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"mine", "kept"} {
		_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			_, err := core.ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		_, err = core.ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "note", Finalizers: []string{"example.com/kept"}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	changed := was.DeepCopy()
	changed.Rules = nil
	_, changing := roles.Update(ctx, changed, metav1.UpdateOptions{})
	err = errors.Join(changing, roles.Delete(ctx, "system:basic-user", metav1.DeleteOptions{}), c.Forget(ctx, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	gone := func(name string) func() error {
		return func() error {
			_, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
			left, listErr := core.ConfigMaps(name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if !apierrors.IsNotFound(err) || listErr != nil || len(left.Items) > 0 {
				return fmt.Errorf("namespace %s: %v; %v, %v", name, err, left, listErr)
			}
			return nil
		}
	}
	eventually(t, gone("mine"))
	if _, err := core.ConfigMaps("kept").Get(ctx, "note", metav1.GetOptions{}); err != nil {
		t.Errorf("what is in another namespace went too: %v", err)
	}

	var went []string
	if err := c.RestoreTo(ctx, before, func(namespace string) { went = append(went, namespace) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kept"}, went); diff != "" {
		t.Error(diff)
	}
	eventually(t, gone("kept"))
	eventually(t, func() error {
		is, err := roles.Get(ctx, role, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(was.Rules, is.Rules); diff != "" {
			return errors.New(diff)
		}
		_, err = roles.Get(ctx, "system:basic-user", metav1.GetOptions{ResourceVersion: "0"})
		return err
	})
}
