package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// followConfigMap has set called with a ConfigMap of the scheduler's namespace whenever it changes, and with nil when
// it is deleted, until the context ends. Once it has been read, it returns whether there is one.
func followConfigMap(ctx context.Context, kube kubernetes.Interface, name string, set func(*corev1.ConfigMap)) (bool,
	error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { set(o.(*corev1.ConfigMap)) },
		UpdateFunc: func(_, o any) { set(o.(*corev1.ConfigMap)) },
		DeleteFunc: func(any) { set(nil) },
	})
	if err != nil {
		return false, err
	}
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), registration.HasSynced)
	return len(informer.GetStore().List()) > 0, nil
}
