package controllers

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// heartbeats watches the kubelets' leases. There is an event for every node every few seconds, so that nothing is kept
// of them but when they were renewed, and nothing is looked at because of one.
func heartbeats(kube kubernetes.Interface) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(corev1.NamespaceNodeLease),
		informers.WithTransform(func(o any) (any, error) {
			if lease, ok := o.(*coordinationv1.Lease); ok {
				return &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID,
						ResourceVersion: lease.ResourceVersion},
					Spec: coordinationv1.LeaseSpec{RenewTime: lease.Spec.RenewTime},
				}, nil
			}
			return o, nil
		}))
	return factory.Coordination().V1().Leases().Informer()
}

// contact is since when the API server has answered without interruption. What was not heard while it did not, or while
// this process was stopped, is nobody's silence.
type contact struct {
	since, last time.Time
}

// keepContact asks the API server for a sign of life several times within a grace, until the context ends.
func (n *nodes) keepContact(ctx context.Context) {
	period := n.args.NodeLossGrace.Duration / 4
	every(ctx, n.clock, period, func() { n.seen.noteContact(responds(ctx, n.kube, period), period, n.clock.Now()) })
}

// responds reports whether the API server answers within a time.
func responds(ctx context.Context, kube kubernetes.Interface, within time.Duration) bool {
	asked, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := kube.CoreV1().Nodes().List(asked, metav1.ListOptions{Limit: 1})
	return err == nil
}

// noteContact notes an answer of the API server, or that there was none.
func (w *nodeWatch) noteContact(answered bool, period time.Duration, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !answered:
		w.contact = contact{}
	case w.contact.last.IsZero() || now.Sub(w.contact.last) > 3*period:
		w.contact = contact{now, now}
	default:
		w.contact.last = now
	}
}

// inContact returns since when the API server has answered; false if it has not of late.
func (w *nodeWatch) inContact(period time.Duration, now time.Time) (time.Time, bool) {
	return w.contact.since, !w.contact.last.IsZero() && now.Sub(w.contact.last) <= 3*period
}
