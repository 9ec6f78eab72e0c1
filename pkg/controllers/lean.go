package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// lean leaves out of an object that is cached what nobody here reads: who wrote which field and, of what has ended,
// what its containers were to do. A week's Runs and their pods are kept (R39).
func lean(o any) (any, error) {
	if object, is := o.(metav1.Object); is {
		object.SetManagedFields(nil)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		if rank.Ended(o) {
			leanPod(&o.Spec)
		}
	case *rqv1.Run:
		if lifecycle.Done(o) && o.Spec.Template != nil {
			leanPod(&o.Spec.Template.Spec)
		}
	}
	return o, nil
}

// leanPod keeps what a pod asks for, where it is and how long it takes to end.
func leanPod(spec *corev1.PodSpec) {
	spec.Volumes = nil
	for _, containers := range [...][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			containers[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources,
				ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy}
		}
	}
}
