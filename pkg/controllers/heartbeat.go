package controllers

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// newHeartbeats watches the kubelets' leases. There is an event for every node every few seconds, so that nothing is
// kept of them but when they were renewed, and nothing is looked at because of one.
func newHeartbeats(kube kubernetes.Interface) cache.SharedIndexInformer {
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
