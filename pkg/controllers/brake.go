package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// unread is how the brakes stand until it is known what has been said: nobody is cut by a process that may have missed it.
var unread = brake.State{Problem: "ConfigMap " + Namespace + "/" + brake.ConfigMap + " has not been read yet"}

// brakes are what an administrator says about cuts.
type brakes struct {
	book   *book.Book
	kube   kubernetes.Interface
	events events.EventRecorder
	clock  clock.Clock
}

// watch follows what an administrator says about cuts (R36), until the context ends: one object, and no other.
func (b *brakes) watch(ctx context.Context) {
	factory := informers.NewSharedInformerFactoryWithOptions(b.kube, 0, informers.WithNamespace(Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, brake.ConfigMap).String()
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { b.set(ctx, o.(*corev1.ConfigMap)) },
		UpdateFunc: func(_, o any) { b.set(ctx, o.(*corev1.ConfigMap)) },
		DeleteFunc: func(any) { b.set(ctx, nil) },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching the brakes on cuts; cuts stay paused", "configMap", brake.ConfigMap)
		return
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return
	}
	if len(informer.GetStore().List()) == 0 {
		b.set(ctx, nil) // nobody has said anything
	}
	every(ctx, b.clock, 5*time.Second, func() {
		metrics.RunsCutLastHour.Set(float64(b.book.CutsWithinHour(b.clock.Now())))
	})
}

// set has the book know how the brakes stand, and tells of changes; nil when nobody has said anything.
func (b *brakes) set(ctx context.Context, said *corev1.ConfigMap) {
	state := brake.State{}
	if said != nil {
		state = brake.Parse(said.Data)
	}
	was := b.book.SetBrake(state)
	is := state.Says()
	metrics.CutsPaused.Set(0)
	if is != "" {
		metrics.CutsPaused.Set(1)
	}
	if is == was {
		return
	}
	klog.FromContext(ctx).Info("The brakes on cuts have changed", "now", is, "before", was)
	if said == nil {
		return
	}
	about := said.DeepCopy()
	about.APIVersion, about.Kind = "v1", "ConfigMap"
	switch {
	case state.Problem != "":
		b.events.Eventf(about, nil, corev1.EventTypeWarning, "NotUnderstood", "Brake", "%s", is)
	case is != "":
		b.events.Eventf(about, nil, corev1.EventTypeWarning, "CutsPaused", "Brake", "%s", is)
	case was != unread.Says():
		b.events.Eventf(about, nil, corev1.EventTypeNormal, "CutsResumed", "Brake", "cuts go on")
	}
}
