package integration

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// run is a Run of the site for total GPUs, with changes.
func (s *site) run(name string, total int32, changes ...func(*rqv1.Run)) *rqv1.Run {
	run := &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       rqv1.RunSpec{Owner: s.owner, Resources: rqv1.RunResources{GPUType: s.flavor, TotalGPUs: total}},
	}
	for _, change := range changes {
		change(run)
	}
	return run
}

// submit creates a Run.
func (s *site) submit(name string, total int32, changes ...func(*rqv1.Run)) {
	s.t.Helper()
	s.create(s.run(name, total, changes...))
}

// inGroups makes groups of so many GPUs.
func inGroups(gpus int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &gpus} }
}

// inPods makes pods of so many GPUs.
func inPods(gpus int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Resources.GPUsPerPod = &gpus }
}

// annotated has pods carry an annotation, by which kwok decides what becomes of them.
func annotated(key, value string) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		template(r).Annotations = map[string]string{key: value}
	}
}

// template is the Run's template, made if need be.
func template(r *rqv1.Run) *corev1.PodTemplateSpec {
	if r.Spec.Template == nil {
		grace := int64(0)
		r.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10.1"}},
		}}
	}
	return r.Spec.Template
}

// removeRun deletes a Run.
func (s *site) removeRun(name string) {
	s.t.Helper()
	s.delete(s.run(name, 1))
}

// get reads a Run; the error of one that is not there is nil where missing is allowed.
func (s *site) get(name string) (*rqv1.Run, error) {
	run := &rqv1.Run{}
	err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, run)
	return run, err
}

// told is a Run as the watches tell of it, which may be a moment old; nil if they have not told of it yet.
func (s *site) told(name string) *rqv1.Run {
	o, there, _ := s.mirror.runs.GetStore().GetByKey(s.namespace + "/" + name) // a store's never fails
	if !there {
		return nil
	}
	return o.(*rqv1.Run)
}

// await waits until a Run is in a phase with a message that holds a text. The API server is not asked as long as its
// watches tell of another.
func (s *site) await(name string, phase rqv1.RunPhase, message string) *rqv1.Run {
	s.t.Helper()
	var run *rqv1.Run
	eventually(s.t, fmt.Sprintf("Run %s is to be %s with %q", name, phase, message), func() (err error) {
		if told := s.told(name); told != nil {
			if err := is(told, phase, message); err != nil {
				return err
			}
		}
		if run, err = s.get(name); err == nil {
			err = is(run, phase, message)
		}
		return err
	})
	return run
}

// is tells how a Run is not in a phase with a message that holds a text.
func is(run *rqv1.Run, phase rqv1.RunPhase, message string) error {
	if run.Status.Phase != phase || !strings.Contains(run.Status.Message, message) {
		return fmt.Errorf("Run %s is %s: %s", run.Name, run.Status.Phase, run.Status.Message)
	}
	return nil
}

// podsOf are the pods of a Run, by name.
func (s *site) podsOf(run string) map[string]corev1.Pod {
	s.t.Helper()
	var pods corev1.PodList
	err := s.api.List(s.t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{rqv1.LabelRun: run})
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]corev1.Pod{}
	for _, pod := range pods.Items {
		out[pod.Name] = pod
	}
	return out
}

// leasesOf are the Leases of a Run, open and closed.
func (s *site) leasesOf(run string) []rqv1.Lease {
	s.t.Helper()
	var leases rqv1.LeaseList
	err := s.api.List(s.t.Context(), &leases, client.InNamespace(s.namespace), client.MatchingLabels{rqv1.LabelRun: run})
	if err != nil {
		s.t.Fatal(err)
	}
	return leases.Items
}

// holdsNothing is an error if a Run has a Lease, or a pod on a node.
func (s *site) holdsNothing(run string) error {
	if leases := s.leasesOf(run); len(leases) > 0 {
		return fmt.Errorf("Run %s has Leases: %v", run, placesOf(leases))
	}
	for _, pod := range s.podsOf(run) {
		if pod.Spec.NodeName != "" {
			return fmt.Errorf("pod %s is bound to %s", pod.Name, pod.Spec.NodeName)
		}
	}
	return nil
}
