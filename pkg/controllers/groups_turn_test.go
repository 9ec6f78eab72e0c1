package controllers

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// inTurn is a JobSet whose second Job is made once the first is complete, and is wider.
const inTurn = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {namespace: ns, name: steps, uid: the-jobset}
spec:
  replicatedJobs:
  - name: a
    template: {spec: {parallelism: 1, template: {spec: {containers: [
      {name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}
  - name: b
    dependsOn: [{name: a, status: Complete}]
    template: {spec: {parallelism: 2, template: {spec: {containers: [
      {name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}
`

// withJobSet is an API server that has that JobSet.
type withJobSet struct {
	client.WithWatch
	is map[string]any
}

var jobSets = schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}

func (c *withJobSet) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{jobSets})
	mapper.Add(jobSets.WithKind("JobSet"), meta.RESTScopeNamespace)
	return mapper
}

func (c *withJobSet) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	object, is := o.(*unstructured.Unstructured)
	if !is || object.GetKind() != "JobSet" {
		return c.WithWatch.Get(ctx, key, o, how...)
	}
	object.Object = maps.Clone(c.is)
	return nil
}

// ofSteps is a pod of a Job of that JobSet.
func ofSteps(name, job, index string) *corev1.Pod {
	pod := foreign(name, "8")
	pod.Labels = map[string]string{"jobset.sigs.k8s.io/jobset-name": "steps", "jobset.sigs.k8s.io/job-index": "0",
		"jobset.sigs.k8s.io/replicatedjob-name": job, "batch.kubernetes.io/job-completion-index": index}
	return pod
}

// beginsInTurn has the Run of a JobSet be made, of whose Jobs one follows the other, with its first pod.
func beginsInTurn(t *testing.T) (g *grouped, jobSet map[string]any, first *corev1.Pod) {
	t.Helper()
	g = newGrouped(t)
	g.named("o")
	if err := yaml.Unmarshal([]byte(inTurn), &jobSet); err != nil {
		t.Fatal(err)
	}
	g.groups.client = &withJobSet{g.groups.client, jobSet}
	first = ofSteps("a", "a", "0")
	g.groups.note(first)
	g.want("it is new", first, "create")
	return g, jobSet, first
}

// TestWhatFollowsWhenAJobIsComplete is another gang where it is wider: its pods get no ranks of the Run that is done,
// which ends, and makes room for theirs.
func TestWhatFollowsWhenAJobIsComplete(t *testing.T) {
	g, _, first := beginsInTurn(t)
	if total := g.run().Spec.Resources.TotalGPUs; total != 8 {
		t.Fatalf("the first Job asks for %d GPUs", total)
	}
	g.starts()
	run, done := g.run(), ofSteps("a", "a", "0")
	done.Status.Phase = corev1.PodSucceeded
	labels := done.Labels
	g.ranked(done, run)
	maps.Copy(done.Labels, labels)
	g.groups.drop(done)
	next := []*corev1.Pod{ofSteps("b0", "b", "0"), ofSteps("b1", "b", "1")}
	for _, pod := range next {
		g.groups.note(pod)
	}
	if offers, _ := g.groups.offers(run); len(offers) != 0 {
		t.Errorf("%d pods are offered before anybody has looked at what has begun", len(offers))
	}
	g.looksWith(done)
	if offers, end := g.groups.offers(run); len(offers) != 0 || end != rqv1.RunCompleted {
		t.Errorf("%d pods are offered to the Run that is done, which ends as %q", len(offers), end)
	}
	run.Status.Phase = rqv1.RunCompleted
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	g.want("it has ended", first, "delete")
	g.want("it is gone", first, "create")
	if total := g.run().Spec.Resources.TotalGPUs; total != 16 {
		t.Errorf("what follows asks for %d GPUs", total)
	}
}

// TestASuspendedGroupGoes although some of its pods have completed: those are there for as long as their controller
// keeps them, and the others would come back one by one once it is resumed.
func TestASuspendedGroupGoes(t *testing.T) {
	g, is, first := beginsInTurn(t)
	g.starts()
	done, labels := ofSteps("a", "a", "0"), first.Labels
	done.Status.Phase = corev1.PodSucceeded
	g.ranked(done, g.run())
	maps.Copy(done.Labels, labels)
	g.groups.drop(done)
	g.want("a pod is done", first)
	is["spec"].(map[string]any)["suspend"] = true
	g.want("it is suspended", first, "delete")
}
