package group

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	trainJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {namespace: ns, name: llm, annotations: {rq.davidlangworthy.io/owner: "org:team"}}
spec:
  runtimeRef: {name: torch}
  trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}
`
	trainRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 2}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {schedulerName: jobtree, containers: [{name: dataset-initializer}]}}}
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {schedulerName: jobtree, containers: [{name: node}]}}}
`
	mpiRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 1, mpi: {runLauncherAsNode: true}}
  template:
    spec:
      replicatedJobs:
      - name: launcher
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {schedulerName: jobtree, containers: [{name: node}]}}} # first
      - name: node
        template:
          spec: {template: {spec: {schedulerName: jobtree, containers: [{name: node}]}}}
`
)

// TestAssemble: a TrainJob has the pods that its runtime says, as many and as large as it says itself.
func TestAssemble(t *testing.T) {
	none := func(string, Key) (map[string]any, error) { return nil, errors.New("it is not there") }
	there := func(apiVersion string, is Key) (map[string]any, error) {
		if want := (Key{API: apiTrainer, Kind: "ClusterTrainingRuntime", Name: "torch"}); is != want ||
			apiVersion != "trainer.kubeflow.org/v1alpha1" {
			return nil, fmt.Errorf("%+v of %s is asked for", is, apiVersion)
		}
		return objectOf(t, trainRuntime), nil
	}
	for name, c := range map[string]struct {
		objects []string
		other   func(string, Key) (map[string]any, error)
		want    string
	}{
		"with its runtime": {[]string{trainRuntime, trainJob}, none, "JobSet/llm: 32 of H100 by 8"},
		"given a namespace": {[]string{strings.Replace(trainRuntime, "name: torch", "namespace: ns, name: torch", 1),
			trainJob}, none, "JobSet/llm: 32 of H100 by 8"},
		"as many as the runtime says": {[]string{strings.Replace(trainJob, "numNodes: 4, ", "", 1)}, there,
			"JobSet/llm: 16 of H100 by 8"},
		"a runtime that is there": {[]string{trainJob}, there, "JobSet/llm: 32 of H100 by 8"},
		"without": {[]string{trainJob}, none,
			"TrainJob/llm takes its pod template from ClusterTrainingRuntime/torch: it is not there"},
		"by MPI, the launcher is a node": {[]string{mpiRuntime, trainJob}, none, "JobSet/llm: 32 of H100 by 8"},
		"by MPI, the launcher is none": {[]string{strings.NewReplacer("runLauncherAsNode: true", "",
			"{name: node}]}}} # first", "{name: mpirun}]}}}").Replace(mpiRuntime), trainJob}, none,
			"JobSet/llm: 32 of H100 by 8"},
		"a runtime alone": {[]string{trainRuntime}, none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []map[string]any
			for _, text := range c.objects {
				objects = append(objects, objectOf(t, text))
			}
			var got string
			objects, err := Assemble(objects, c.other)
			if err == nil {
				var groups []*Observed
				groups, err = Imagine(testRules, objects)
				for _, o := range groups {
					o.Types = []string{"H100"}
					d := Derive(o)
					got += fmt.Sprintf("%s: %s%s%s", o.Key, d.Problem, d.Waits, brief(d.Spec))
				}
			}
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
