package book

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func named(n rqv1.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
}

func nameOf(o metav1.Object) rqv1.NamespacedName {
	return rqv1.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func latest(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// instant returns an instant as a Lease records it; nil for none.
func instant(at time.Time) *metav1.MicroTime {
	if at.IsZero() {
		return nil
	}
	out := metav1.NewMicroTime(at)
	return &out
}
