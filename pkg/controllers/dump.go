package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/davidlangworthy/jobtree/pkg/dump"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// dumps answers administrators who ask for all that is known of a Run.
type dumps struct {
	kube kubernetes.Interface
	see  func(types.NamespacedName) (lifecycle.Observed, error)
}

// watch answers until the context ends.
func (d *dumps) watch(ctx context.Context) {
	err := followConfigMap(ctx, d.kube, dump.ConfigMap, func(c *corev1.ConfigMap) { d.answer(ctx, c) })
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching for requests for dumps", "configMap", dump.ConfigMap)
	}
}

// answer adds what is known of a Run to the ConfigMap that asks for it; nil when that is gone.
func (d *dumps) answer(ctx context.Context, asked *corev1.ConfigMap) {
	if asked == nil {
		return
	}
	run, ok := dump.Asked(asked)
	if !ok {
		return
	}
	answered := asked.DeepCopy()
	o, err := d.see(run)
	if err == nil && o.Run == nil {
		err = fmt.Errorf("the scheduler does not know Run %s", run)
	}
	dump.Answer(answered, err, o.Plain(), o.Abridged())
	_, err = d.kube.CoreV1().ConfigMaps(Namespace).Update(ctx, answered, metav1.UpdateOptions{})
	klog.FromContext(ctx).Info("Somebody asked for everything that is known about a Run", "run", run, "err", err)
}
