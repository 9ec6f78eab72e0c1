package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// unread is how the brakes stand until it is known what has been said: nobody is cut by a process that may have missed
// it.
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
	err := followConfigMap(ctx, b.kube, brake.ConfigMap, func(said *corev1.ConfigMap) { b.apply(ctx, said) })
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching the brakes on cuts; cuts stay paused", "configMap", brake.ConfigMap)
		return
	}
	every(ctx, b.clock, 5*time.Second, func() {
		metrics.RunsCutLastHour.Set(float64(b.book.CutsWithinHour(b.clock.Now())))
	})
}

// apply has the book know how the brakes stand, and tells of changes; nil when nobody has said anything.
func (b *brakes) apply(ctx context.Context, said *corev1.ConfigMap) {
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
		b.events.Eventf(about, nil, corev1.EventTypeNormal, "CutsResumed", "Brake", "cuts are resumed")
	}
}
