package zoo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ofLWS makes the StatefulSet of a group's leader, and that of its workers, for each group.
func ofLWS(o *object, _ *sight) (out []*object) {
	const key = "leaderworkerset.sigs.k8s.io/"
	size := numberAt(o.Object, "spec.leaderWorkerTemplate.size", 1)
	worker := mapAt(o.Object, "spec.leaderWorkerTemplate.workerTemplate")
	leader := mapAt(o.Object, "spec.leaderWorkerTemplate.leaderTemplate")
	if leader == nil {
		leader = worker
	}
	for g := range numberAt(o.Object, "spec.replicas", 1) {
		for i := range size {
			group, template := fmt.Sprintf("%s-%d", o.GetName(), g), worker
			name, annotations := group+"-"+strconv.Itoa(i), words{key + "size": strconv.Itoa(size)}
			if i == 0 {
				name, template = group, leader
			} else {
				annotations[key+"leader-name"] = group
			}
			out = append(out, pod(o, name, template, words{key + "name": o.GetName(), key + "group-index": strconv.Itoa(g),
				key + "group-key": "689ce1b5a8b07", key + "worker-index": strconv.Itoa(i)}, annotations))
		}
	}
	return out
}

func lwsLoses(o *object) loss {
	if strings.HasPrefix(textAt(o.Object, "spec.leaderWorkerTemplate.restartPolicy"), "None") {
		return again
	}
	return all
}

// ofRayCluster makes a head, and the workers of each group; those of several hosts have numbers.
func ofRayCluster(o *object, _ *sight) (out []*object) {
	written := func(group, role string) words {
		return words{"ray.io/cluster": o.GetName(), "ray.io/group": group, "ray.io/node-type": role,
			"ray.io/is-ray-node": "yes", "ray.io/identifier": o.GetName() + "-" + role,
			"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
	}
	out = append(out, pod(o, o.GetName()+"-head", mapAt(o.Object, "spec.headGroupSpec.template"),
		written("headgroup", "head"), words{"ray.io/ft-enabled": "false"}))
	for _, group := range listAt(o.Object, "spec.workerGroupSpecs") {
		if group["suspend"] == true {
			continue
		}
		name, hosts := textAt(group, "groupName"), numberAt(group, "numOfHosts", 1)
		for replica := range numberAt(group, "replicas", 0) {
			for host := range hosts {
				labels := written(name, "worker")
				if hosts > 1 {
					labels["ray.io/worker-group-replica-index"] = strconv.Itoa(replica)
					labels["ray.io/replica-host-index"] = strconv.Itoa(host)
				}
				out = append(out, pod(o, o.GetName()+"-"+name+"-worker-", mapAt(group, "template"), labels, nil))
			}
		}
	}
	return out
}

func ofRayJob(o *object, _ *sight) []*object {
	cluster := child(o, "ray.io/v1", "RayCluster", o.GetName()+"-x7k2p", at(o.Object, "spec.rayClusterSpec"), nil, nil)
	submits := map[string]any{"template": at(o.Object, "spec.submitterPodTemplate"), "backoffLimit": int64(2)}
	if submits["template"] == nil {
		return []*object{cluster}
	}
	return []*object{cluster, child(o, "batch/v1", "Job", o.GetName(), submits, nil, nil)}
}

func ofRayService(o *object, _ *sight) []*object {
	return []*object{child(o, "ray.io/v1", "RayCluster", o.GetName()+"-raycluster-q4t8z",
		at(o.Object, "spec.rayClusterConfig"), nil, nil)}
}

// ofKubeflow makes the replicas of a job of Kubeflow's training operator, of each type those that are asked for.
func ofKubeflow(operator, specs string) func(o *object, _ *sight) []*object {
	return func(o *object, _ *sight) (out []*object) {
		types := mapAt(o.Object, "spec."+specs)
		for _, name := range slices.Sorted(maps.Keys(types)) {
			of, part := types[name].(map[string]any), strings.ToLower(name)
			for i := range numberAt(of, "replicas", 1) {
				labels := replica(o, operator, i)
				labels["training.kubeflow.org/replica-type"] = part
				if part == "master" || part == "chief" {
					labels["training.kubeflow.org/job-role"] = "master"
				}
				out = append(out, pod(o, fmt.Sprintf("%s-%s-%d", o.GetName(), part, i), mapAt(of, "template"), labels, nil))
			}
		}
		return out
	}
}

// replica is what those operators write on all of their pods.
func replica(o *object, operator string, i int) words {
	return words{"training.kubeflow.org/operator-name": operator, "training.kubeflow.org/job-name": o.GetName(),
		"training.kubeflow.org/replica-index": strconv.Itoa(i)}
}

// ofMPIJob makes the workers, and a Job for the launcher, which may be the first of them.
func ofMPIJob(o *object, _ *sight) (out []*object) {
	launcher, worker := mapAt(o.Object, "spec.mpiReplicaSpecs.Launcher"), mapAt(o.Object, "spec.mpiReplicaSpecs.Worker")
	first := 0
	if at(o.Object, "spec.runLauncherAsWorker") == true {
		first = 1
	}
	for i := range numberAt(worker, "replicas", 1) {
		labels := replica(o, "mpi-operator", first+i)
		labels["training.kubeflow.org/job-role"] = "worker"
		out = append(out, pod(o, fmt.Sprintf("%s-worker-%d", o.GetName(), i), mapAt(worker, "template"), labels, nil))
	}
	job := child(o, "batch/v1", "Job", o.GetName()+"-launcher", map[string]any{"template": mapAt(launcher, "template")},
		words{"app": o.GetName()}, nil)
	labels := map[string]any{"training.kubeflow.org/operator-name": "mpi-operator",
		"training.kubeflow.org/job-name": o.GetName(), "training.kubeflow.org/job-role": "launcher"}
	if first == 1 {
		labels["training.kubeflow.org/replica-index"] = "0"
	}
	template := mapAt(job.Object, "spec.template")
	if template["metadata"] == nil {
		template["metadata"] = map[string]any{}
	}
	template["metadata"].(map[string]any)["labels"] = labels
	return append(out, job)
}

// ofTrainJob makes the JobSet that the job's runtime describes, with the job's own words in the node that trains.
func ofTrainJob(o *object, seen *sight) []*object {
	runtime := seen.named("TrainingRuntime", textAt(o.Object, "spec.runtimeRef.name"))
	if runtime == nil {
		return nil
	}
	set := child(o, "jobset.x-k8s.io/v1alpha2", "JobSet", o.GetName(), at(runtime.Object, "spec.template.spec"), nil, nil)
	for _, job := range listAt(set.Object, "spec.replicatedJobs") {
		if textAt(job, "name") != "node" {
			continue
		}
		spec := mapAt(job, "template.spec")
		n := int64(numberAt(o.Object, "spec.trainer.numNodes", 1))
		spec["parallelism"], spec["completions"] = n, n
		if resources := at(o.Object, "spec.trainer.resourcesPerNode"); resources != nil {
			listAt(spec, "template.spec.containers")[0]["resources"] = resources
		}
	}
	return []*object{set}
}

// ofAppWrapper makes what it holds.
func ofAppWrapper(o *object, _ *sight) (out []*object) {
	for _, of := range listAt(o.Object, "spec.components") {
		is := mapAt(of, "template")
		made := child(o, textAt(is, "apiVersion"), textAt(is, "kind"), textAt(is, "metadata.name"), is["spec"],
			words{"workload.codeflare.dev/appwrapper": o.GetName()}, nil)
		out = append(out, made)
	}
	return out
}

// ofWorkflow makes a pod of the step that runs now, beside which Argo puts its own containers.
func ofWorkflow(o *object, _ *sight) (out []*object) {
	for i, template := range listAt(o.Object, "spec.templates") {
		if template["container"] == nil {
			continue
		}
		aside := func(name string) map[string]any {
			return map[string]any{"name": name, "image": "quay.io/argoproj/argoexec:v3.6.2"}
		}
		spec := map[string]any{"restartPolicy": "Never"}
		for _, key := range []string{"schedulerName", "nodeSelector", "tolerations"} {
			for _, from := range []any{at(o.Object, "spec."+key), template[key]} {
				if from != nil {
					spec[key] = from
				}
			}
		}
		main := mapAt(template, "container")
		main["name"] = "main"
		before, _ := template["initContainers"].([]any)
		beside, _ := template["sidecars"].([]any)
		spec["initContainers"] = append([]any{aside("init")}, before...)
		spec["containers"] = append([]any{aside("wait"), main}, beside...)
		name := fmt.Sprintf("%s-%s-%d", o.GetName(), textAt(template, "name"), 1000+i)
		out = append(out, pod(o, name, map[string]any{"spec": spec},
			words{"workflows.argoproj.io/workflow": o.GetName(), "workflows.argoproj.io/completed": "false"},
			words{"workflows.argoproj.io/node-name": o.GetName()}))
	}
	return out
}

// ofSpark makes a driver, and executors once it runs, which are the driver's own.
func ofSpark(o *object, seen *sight) (out []*object) {
	written := func(role string) words {
		return words{"spark-role": role, "spark-app-selector": "spark-1f0c", "sparkoperator.k8s.io/app-name": o.GetName()}
	}
	driver := o.GetName() + "-driver"
	out = append(out, pod(o, driver, mapAt(o.Object, "spec.driver.template"), written("driver"), nil))
	if is := seen.pod(driver); is != nil && is.Spec.NodeName != "" {
		by := &object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		by.SetName(driver)
		by.SetNamespace(o.GetNamespace())
		by.SetUID(is.UID)
		for i := range numberAt(o.Object, "spec.executor.instances", 1) {
			labels := written("executor")
			labels["spark-exec-id"] = strconv.Itoa(i + 1)
			out = append(out, pod(by, fmt.Sprintf("%s-exec-%d", o.GetName(), i+1), mapAt(o.Object, "spec.executor.template"),
				labels, nil))
		}
	}
	return out
}

func ofNotebook(o *object, _ *sight) []*object {
	return []*object{child(o, "apps/v1", "StatefulSet", o.GetName(), selecting(1, mapAt(o.Object, "spec.template.spec"),
		map[string]any{"statefulset": o.GetName(), "notebook-name": o.GetName()}), nil, nil)}
}

// selecting is the spec of a StatefulSet or Deployment whose pods are known by their labels.
func selecting(replicas int64, pods, labels map[string]any) map[string]any {
	return map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pods}}
}

func ofInferenceService(o *object, _ *sight) []*object {
	predictor := mapAt(o.Object, "spec.predictor")
	return []*object{child(o, "apps/v1", "Deployment", o.GetName()+"-predictor", selecting(
		int64(numberAt(predictor, "minReplicas", 1)), predictor, map[string]any{
			"serving.kserve.io/inferenceservice": o.GetName(), "component": "predictor"}), nil, nil)}
}

// ofVolcano makes the pods of each task.
func ofVolcano(o *object, _ *sight) (out []*object) {
	for _, task := range listAt(o.Object, "spec.tasks") {
		for i := range numberAt(task, "replicas", 1) {
			name := textAt(task, "name")
			out = append(out, pod(o, fmt.Sprintf("%s-%s-%d", o.GetName(), name, i), mapAt(task, "template"),
				words{"volcano.sh/job-name": o.GetName(), "volcano.sh/task-spec": name, "volcano.sh/task-index": strconv.Itoa(i)},
				words{"scheduling.k8s.io/group-name": o.GetName() + "-1f0c"}))
		}
	}
	return out
}
