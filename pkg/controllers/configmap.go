package controllers

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// followConfigMap has set called with a ConfigMap of the scheduler's namespace whenever it changes, and with nil when
// it turns out that there is none, until the context ends. It returns once it has been read. Calls are made one after
// the other: that there was none is never said after what was read later.
func followConfigMap(ctx context.Context, kube kubernetes.Interface, name string, set func(*corev1.ConfigMap)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	var mu sync.Mutex
	tell := func(c *corev1.ConfigMap) {
		mu.Lock()
		defer mu.Unlock()
		set(c)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(o.(*corev1.ConfigMap)) },
		UpdateFunc: func(_, o any) { tell(o.(*corev1.ConfigMap)) },
		DeleteFunc: func(any) { tell(nil) },
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	if len(informer.GetStore().List()) == 0 {
		set(nil)
	}
	return nil
}
