package controllers

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// publishPeriod is how often it is looked whether what everybody may read has changed: a bound on writes, whatever
// happens in between.
const publishPeriod = 10 * time.Second

// publisher keeps the ConfigMap that everybody who can log in may read.
type publisher struct {
	book  *book.Book
	kube  kubernetes.Interface
	clock clock.Clock
	args  *config.Args
	// is what the ConfigMap holds; nil while that is not known.
	is map[string]string
}

// watch publishes until the context ends.
func (p *publisher) watch(ctx context.Context) {
	every(ctx, p.clock, publishPeriod, func() {
		if err := p.publish(ctx); err != nil {
			klog.FromContext(ctx).Info("Retrying to publish what everybody may read", "configMap", published.ConfigMap,
				"err", err)
		}
	})
}

// publish writes the ConfigMap if it does not say what is so.
func (p *publisher) publish(ctx context.Context) error {
	fleet := p.book.FleetSummary()
	gaugeFleet(fleet)
	gaugeWaiting(p.book.Waiting(), fleet)
	data, err := published.Data(p.args, fleet)
	if err != nil || maps.Equal(data, p.is) {
		return err
	}
	objects := p.kube.CoreV1().ConfigMaps(Namespace)
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: published.ConfigMap}, Data: data}
	if p.is == nil {
		is, err := objects.Get(ctx, published.ConfigMap, metav1.GetOptions{})
		if err == nil && maps.Equal(is.Data, data) {
			p.is = data
			return nil
		}
	}
	_, err = objects.Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, next, metav1.CreateOptions{})
	}
	p.is = nil
	if err == nil {
		p.is = data
	}
	return err
}
