package dashboard

import (
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// store keeps objects without what is not shown, and says when one has changed.
type store struct {
	cache.Store
	changed func()
	heard   atomic.Int64 // when the API server has told something last, in nanoseconds
}

// hear takes note that the API server has told something, be it that all is as it was.
func (s *store) hear() { s.heard.Store(time.Now().UnixNano()) }

// since is from when on it has told nothing, at a moment at which it fails to.
func (s *store) since(failed time.Time) time.Time {
	if heard := s.heard.Load(); heard > 0 && heard < failed.UnixNano() {
		return time.Unix(0, heard)
	}
	return failed
}

// UpdateResourceVersion is called with each event, those too that tell of no change and come about once a minute.
func (s *store) UpdateResourceVersion(string) { s.hear() }

// Add keeps an object.
func (s *store) Add(object any) error {
	defer s.changed()
	return s.Store.Add(slim(object))
}

// Update replaces an object.
func (s *store) Update(object any) error {
	defer s.changed()
	return s.Store.Update(slim(object))
}

// Delete forgets an object.
func (s *store) Delete(object any) error {
	defer s.changed()
	return s.Store.Delete(object)
}

// Replace keeps a list of objects instead of what was kept.
func (s *store) Replace(objects []any, version string) error {
	defer s.changed()
	for i := range objects {
		objects[i] = slim(objects[i])
	}
	return s.Store.Replace(objects, version)
}

// slim takes off an object what no view shows and what makes up most of its size.
func slim(object any) any {
	o, ok := object.(client.Object)
	if !ok {
		panic(fmt.Sprintf("%T is no object of the API", object))
	}
	o.SetManagedFields(nil)
	switch o := object.(type) {
	case *rqv1.Run:
		o.Spec.Template = nil
	case *corev1.Node:
		o.Status.Images = nil
	case *corev1.Pod:
		slimPod(o)
	}
	return object
}

// slimPod leaves of a pod what says where it is, whose it is and how many GPUs it takes.
func slimPod(pod *corev1.Pod) {
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, Resources: pod.Spec.Resources}
	for _, of := range []struct{ from, into *[]corev1.Container }{{&pod.Spec.InitContainers, &spec.InitContainers},
		{&pod.Spec.Containers, &spec.Containers}} {
		for _, c := range *of.from {
			*of.into = append(*of.into, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
		}
	}
	pod.Annotations, pod.Spec = nil, spec
	pod.Status = corev1.PodStatus{Phase: pod.Status.Phase}
}
