package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// partly are objects of kinds that have a pod template for each of their parts.
const (
	ray = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {namespace: ns, name: tune, annotations: {rq.davidlangworthy.io/owner: "org:team"}}
spec:
  headGroupSpec:
    template: {spec: {schedulerName: jobtree, containers: [{name: ray-head}]}}
  workerGroupSpecs:
  - {groupName: gpus, replicas: 2, minReplicas: 0, maxReplicas: 8, template: {spec: {schedulerName: jobtree,
      containers: [{name: ray-worker, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
  - {groupName: more, minReplicas: 1, template: {spec: {schedulerName: jobtree, containers: [
      {name: ray-worker, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`
	pytorch = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {namespace: ns, name: bert, annotations: {rq.davidlangworthy.io/owner: "org:team"}}
spec:
  pytorchReplicaSpecs:
    Worker: {replicas: 3, template: {spec: {schedulerName: jobtree, containers: [
      {name: pytorch, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
    Master: {replicas: 1, template: {spec: {schedulerName: jobtree, containers: [
      {name: pytorch, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`
	mpi = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {namespace: ns, name: hpl, annotations: {rq.davidlangworthy.io/owner: "org:team"}}
spec:
  slotsPerWorker: 8
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {schedulerName: jobtree, containers: [{name: mpirun}]}}}
    Worker: {replicas: 2, template: {spec: {schedulerName: jobtree, containers: [
      {name: worker, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`
)

// TestParts: a group has as many ranks as all templates of its object are for that ask for GPUs, and each pod the rank
// that follows from its part and its index.
func TestParts(t *testing.T) {
	hosts, _, _ := strings.Cut(ray, "  - {groupName: more")
	hosts = strings.Replace(hosts, "replicas: 2", "replicas: 2, numOfHosts: 2", 1)
	head, spec, _ := strings.Cut(ray, "spec:\n")
	job := strings.Replace(head, "RayCluster", "RayJob", 1) + "spec:\n  rayClusterSpec:\n  " +
		strings.ReplaceAll(spec, "\n", "\n  ")
	for name, c := range map[string]struct {
		object, brief string
		ranks         map[string]int
	}{
		"Ray": {ray, "RayCluster/tune: 24 of H100 by 8", map[string]int{"tune-headgroup": -1, "tune-gpus-0": 0,
			"tune-gpus-1": -1, "tune-more-0": 2}},
		"Ray of several hosts": {hosts, "RayCluster/tune: 32 of H100 by 8, in groups of 16", map[string]int{
			"tune-headgroup": -1, "tune-gpus-0": 0, "tune-gpus-1": 1, "tune-gpus-2": 2, "tune-gpus-3": 3}},
		"Ray with workers that are suspended": {
			strings.Replace(ray, "groupName: more,", "groupName: more, suspend: true,", 1),
			"RayCluster/tune: 16 of H100 by 8", map[string]int{"tune-headgroup": -1, "tune-gpus-0": 0, "tune-gpus-1": -1}},
		"a job of Ray": {job, "RayCluster/tune: 24 of H100 by 8", map[string]int{"tune-headgroup": -1,
			"tune-gpus-0": 0, "tune-gpus-1": -1, "tune-more-0": 2}},
		"PyTorch": {pytorch, "PyTorchJob/bert: 32 of H100 by 8", map[string]int{"bert-master-0": 0, "bert-worker-0": 1,
			"bert-worker-1": 2, "bert-worker-2": 3}},
		"MPI": {mpi, "MPIJob/hpl: 16 of H100 by 8", map[string]int{"hpl-launcher-0": -1, "hpl-worker-0": 0,
			"hpl-worker-1": 1}},
		"MPI with a launcher that works": {strings.Replace(mpi, "{name: mpirun}",
			"{name: mpirun, resources: {limits: {nvidia.com/gpu: 8}}}", 1), "MPIJob/hpl: 24 of H100 by 8",
			map[string]int{"hpl-launcher-0": 0, "hpl-worker-0": 1, "hpl-worker-1": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			groups, err := Imagine(testRules, []map[string]any{objectOf(t, c.object)})
			if err != nil || len(groups) != 1 {
				t.Fatalf("%d groups: %v", len(groups), err)
			}
			o := groups[0]
			o.Types = []string{"H100"}
			d := Derive(o)
			if got := fmt.Sprintf("%s: %s%s%s", o.Key, d.Problem, d.Waits, brief(d.Spec)); got != c.brief {
				t.Errorf("got %s, want %s", got, c.brief)
			}
			shape, ranks := ShapeOf(o), map[string]int{}
			for _, pod := range o.Pods {
				ranks[pod.Name] = shape.Rank(pod)
			}
			if diff := cmp.Diff(c.ranks, ranks); diff != "" {
				t.Errorf("ranks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheObjectOfAGroup: several groups may be one object's, and any Run may say that it is of such a kind.
func TestTheObjectOfAGroup(t *testing.T) {
	for name, want := range map[string]string{"llm-0": "llm", "my-llm-12": "my-llm", "llm": "llm", "": ""} {
		if is := ObjectName(Key{"ns", "leaderworkerset.x-k8s.io", "LeaderWorkerSet", name}); is != want {
			t.Errorf("%q is of %q, want %q", name, is, want)
		}
	}
}

// TestALauncherThatWaitsForItsWorkers is made late, if it asks for GPUs: the workers do not wait for it.
func TestALauncherThatWaitsForItsWorkers(t *testing.T) {
	waits := strings.Replace(mpi, "slotsPerWorker: 8", "launcherCreationPolicy: WaitForWorkersReady", 1)
	works := strings.Replace(waits, "{name: mpirun}", "{name: mpirun, resources: {limits: {nvidia.com/gpu: 8}}}", 1)
	for object, want := range map[string]Shape{waits: {Ranks: 2, First: 2}, works: {Ranks: 3, First: 2, Late: true}} {
		pod := podOf("hpl-worker-0", 8)
		s := ShapeOf(&Observed{Rules: testRules, Key: Key{"ns", apiKubeflow, "MPIJob", "hpl"}, Pods: []*corev1.Pod{pod},
			Object: objectOf(t, object)})
		if s.Ranks != want.Ranks || s.First != want.First || s.Late != want.Late {
			t.Errorf("%d ranks, %d of them first, late: %v; want %+v", s.Ranks, s.First, s.Late, want)
		}
	}
}
