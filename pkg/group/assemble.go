package group

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// apiTrainer is the API group of TrainJobs, and of the runtimes that they take their pod templates from.
const apiTrainer = "trainer.kubeflow.org"

// Assemble returns some objects with each TrainJob replaced by the JobSet that its controller makes of it and of the
// runtime that it names; the runtimes themselves make nothing. Those that are not among the objects are asked for, by
// their API version too. The error of one that is not found is returned.
func Assemble(objects []map[string]any, other func(apiVersion string, is Key) (map[string]any, error)) (
	[]map[string]any, error) {
	var out []map[string]any
	for _, object := range objects {
		key := KeyOfObject(object)
		if key.API != apiTrainer {
			out = append(out, object)
			continue
		}
		from, named := runtimeOf(object)
		if !named {
			continue // a runtime
		}
		var found map[string]any
		if i := slices.IndexFunc(objects, func(o map[string]any) bool { return sameRuntime(KeyOfObject(o), from) }); i >= 0 {
			found = objects[i]
		} else {
			var err error
			if found, err = other(cmp.Or(text(object, "apiVersion"), apiTrainer+"/v1alpha1"), from); err != nil {
				return nil, fmt.Errorf("%s takes its pod template from %s: %w", key, from, err)
			}
		}
		out = append(out, assembled(object, found))
	}
	return out, nil
}

// runtimeOf identifies the runtime that a TrainJob names; false for an object that is none.
func runtimeOf(object map[string]any) (Key, bool) {
	name := text(object, "spec", "runtimeRef", "name")
	key := Key{API: cmp.Or(text(object, "spec", "runtimeRef", "apiGroup"), apiTrainer),
		Kind: cmp.Or(text(object, "spec", "runtimeRef", "kind"), "ClusterTrainingRuntime"), Name: name}
	if key.Kind != "ClusterTrainingRuntime" {
		key.Namespace = KeyOfObject(object).Namespace
	}
	return key, name != ""
}

// sameRuntime reports whether a key of an object, which may have been given a namespace that it is not in, is that of a
// runtime.
func sameRuntime(is, runtime Key) bool {
	if runtime.Namespace == "" {
		is.Namespace = ""
	}
	return is == runtime
}

// assembled returns the JobSet of a TrainJob and its runtime, as far as it says what pods there are.
func assembled(job, from map[string]any) map[string]any {
	key := KeyOfObject(job)
	spec, _, _ := unstructured.NestedMap(from, "spec", "template", "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	annotations := map[string]any{}
	for _, path := range [][]string{{"metadata", "annotations"}, {"spec", "annotations"}} {
		said, _, _ := unstructured.NestedStringMap(job, path...)
		for word, value := range said {
			annotations[word] = value
		}
	}
	_, byMPI, _ := unstructured.NestedMap(from, "spec", "mlPolicy", "mpi")
	resources, _, _ := unstructured.NestedMap(job, "spec", "trainer", "resourcesPerNode")
	jobs, _ := spec["replicatedJobs"].([]any)
	for _, raw := range jobs {
		of, _ := raw.(map[string]any)
		counted := text(of, "template", "metadata", "labels", apiTrainer+"/trainjob-ancestor-step") == "trainer"
		if node := text(of, "name") == "node"; !counted && !(byMPI && node) {
			continue
		} else if byMPI {
			counted = node // the launcher is one pod
		}
		in, _, _ := unstructured.NestedFieldNoCopy(of, "template", "spec")
		template, isMap := in.(map[string]any)
		if !isMap {
			continue
		}
		if nodes, said := nodesOf(job, from, byMPI); said && counted {
			template["parallelism"], template["completions"] = nodes, nodes
		}
		containers, _, _ := unstructured.NestedFieldNoCopy(template, "template", "spec", "containers")
		list, _ := containers.([]any)
		for _, c := range list {
			if container, isMap := c.(map[string]any); isMap && resources != nil && container["name"] == "node" {
				container["resources"] = runtime.DeepCopyJSON(resources)
			}
		}
	}
	if suspended, _, _ := unstructured.NestedBool(job, "spec", "suspend"); suspended {
		spec["suspend"] = true
	}
	return map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{
		"namespace": key.Namespace, "name": key.Name, "annotations": annotations}, "spec": spec}
}

// nodesOf returns how many pods a TrainJob has of the kind that is counted by its nodes; false where neither it nor its
// runtime says. By MPI the launcher may be one of the nodes.
func nodesOf(job, from map[string]any, byMPI bool) (int64, bool) {
	nodes, said, _ := unstructured.NestedInt64(job, "spec", "trainer", "numNodes")
	launches, _, _ := unstructured.NestedBool(from, "spec", "mlPolicy", "mpi", "runLauncherAsNode")
	switch {
	case byMPI && launches:
		return max(nodes-1, 1), said
	case !said && !byMPI:
		nodes, said, _ = unstructured.NestedInt64(from, "spec", "mlPolicy", "numNodes")
	}
	return nodes, said
}

func text(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}
