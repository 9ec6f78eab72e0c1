package zoo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

const (
	completion = "batch.kubernetes.io/job-completion-index"
	jobName    = "batch.kubernetes.io/job-name"
)

// ofJob makes the pods that run at a time: of an Indexed Job each with its index.
func ofJob(o *object, _ *sight) (out []*object) {
	if at(o.Object, "spec.suspend") == true {
		return nil
	}
	n := numberAt(o.Object, "spec.parallelism", 1)
	n = min(n, numberAt(o.Object, "spec.completions", n))
	indexed := at(o.Object, "spec.completionMode") == "Indexed"
	for i := range n {
		labels, annotations := words{jobName: o.GetName(), "job-name": o.GetName(),
			"batch.kubernetes.io/controller-uid": string(o.GetUID()), "controller-uid": string(o.GetUID())}, words{}
		name := o.GetName() + "-"
		if indexed {
			labels[completion], annotations[completion] = strconv.Itoa(i), strconv.Itoa(i)
			name += strconv.Itoa(i) + "-"
		}
		out = append(out, pod(o, name, mapAt(o.Object, "spec.template"), labels, annotations))
	}
	return out
}

// jobLoses: what a failed pod counts for is the Job's own policy. One that allows no failure has failed, unless it
// leaves disruptions out.
func jobLoses(o *object) loss {
	ignores := false
	for _, rule := range listAt(o.Object, "spec.podFailurePolicy.rules") {
		ignores = ignores || rule["action"] == "Ignore" && len(listAt(rule, "onPodConditions")) > 0
	}
	if numberAt(o.Object, "spec.backoffLimit", 6) == 0 && !ignores {
		return never
	}
	return again
}

func ofCronJob(o *object, _ *sight) []*object {
	return []*object{child(o, "batch/v1", "Job", o.GetName()+"-29384610", at(o.Object, "spec.jobTemplate.spec"), nil, nil)}
}

const exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"

// ofJobSet makes those Jobs for which nothing else has to be ready, or complete, first.
func ofJobSet(o *object, seen *sight) (out []*object) {
	const key = "jobset.sigs.k8s.io/"
	for _, of := range listAt(o.Object, "spec.replicatedJobs") {
		part, copies := textAt(of, "name"), numberAt(of, "replicas", 1)
		if !slices.ContainsFunc(listAt(of, "dependsOn"), func(d map[string]any) bool {
			return !seen.reached(words{key + "jobset-name": o.GetName(), key + "replicatedjob-name": textAt(d, "name")},
				textAt(d, "status"))
		}) {
			for i := range copies {
				name := fmt.Sprintf("%s-%s-%d", o.GetName(), part, i)
				written := words{key + "jobset-name": o.GetName(), key + "jobset-uid": string(o.GetUID()),
					key + "replicatedjob-name": part, key + "replicatedjob-replicas": strconv.Itoa(copies),
					key + "job-index": strconv.Itoa(i), key + "restart-attempt": "0"}
				out = append(out, ofReplicated(o, of, name, written))
			}
		}
	}
	return out
}

// ofReplicated is one of the Jobs of a JobSet, whose pods say what it says.
func ofReplicated(o *object, of map[string]any, name string, written words) *object {
	job := child(o, "batch/v1", "Job", name, at(of, "template.spec"), written, nil)
	spec := job.Object["spec"].(map[string]any)
	if spec["completionMode"] == nil {
		spec["completionMode"] = "Indexed"
	}
	annotations := maps.Clone(written)
	domain := ""
	said := []map[string]any{mapAt(of, "template.metadata.annotations"), mapAt(o.Object, "metadata.annotations")}
	for _, where := range said { // the key has dots
		if text, is := where[exclusive].(string); is {
			domain = cmp.Or(domain, text)
		}
	}
	if domain != "" {
		annotations[exclusive] = domain
	}
	template := spec["template"].(map[string]any)
	for key, more := range map[string]words{"labels": written, "annotations": annotations} {
		both := map[string]any{}
		maps.Copy(both, mapAt(template, "metadata."+key))
		for k, v := range more {
			both[k] = v
		}
		if template["metadata"] == nil {
			template["metadata"] = map[string]any{}
		}
		template["metadata"].(map[string]any)[key] = both
	}
	return job
}
