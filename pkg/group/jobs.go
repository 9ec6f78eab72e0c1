package group

import (
	"cmp"
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// replicatedJob is one of the Jobs that a JobSet makes copies of.
type replicatedJob struct {
	Name     string
	Replicas *int
	Template struct {
		Metadata metav1.ObjectMeta
		Spec     batchv1.JobSpec
	}
	DependsOn []dependency
}

// dependency is a Job that another one waits for, until it is Ready or Complete.
type dependency struct{ Name, Status string }

// ofJobs is the shape of a JobSet, of whose Jobs those count that run together. One that begins once another is
// complete which asks for GPUs is none of them before; once it has pods it takes the place of that one.
func ofJobs(o *Observed) Shape {
	raw, _, _ := unstructured.NestedSlice(o.Object, "spec", "replicatedJobs")
	order, _, _ := unstructured.NestedString(o.Object, "spec", "startupPolicy", "startupPolicyOrder")
	above, _, _ := unstructured.NestedStringMap(o.Object, "metadata", "annotations")
	var jobs []replicatedJob
	if text, err := json.Marshal(raw); err != nil || json.Unmarshal(text, &jobs) != nil {
		return Shape{}
	}
	past, ended := completed(o, jobs), succeeded(o)
	var parts []replicated
	late, later := false, false
	waited, over := map[string]bool{}, map[string]bool{} // Jobs that wait for GPUs, and those whose time is after that
	for i := range jobs {
		job := &jobs[i]
		if past[job.Name] {
			continue
		}
		asks, after := o.GPUs(&job.Template.Spec.Template.Spec) > 0, false
		for _, d := range job.DependsOn {
			after = after || waited[d.Name]
			over[job.Name] = over[job.Name] || over[d.Name] || waited[d.Name] && d.Status == untilComplete
		}
		waited[job.Name] = asks || after
		p := replicated{Name: job.Name, Replicas: 1, Spec: job.Template.Spec, Later: after || later,
			Led:    exclusive(above) || exclusive(job.Template.Metadata.Annotations),
			Within: cmp.Or(job.Template.Metadata.Annotations[exclusiveTopology], above[exclusiveTopology])}
		later = later || order == "InOrder" && asks
		if job.Replicas != nil {
			p.Replicas = *job.Replicas
		}
		p.Replicas -= ended[job.Name]
		if !over[job.Name] {
			parts, late = append(parts, p), late || after
		}
	}
	s := inParts(parts, o.GPUs)
	s.Late, s.Begun = s.Late || late || order == "InOrder", len(past) > 0
	return s
}

// succeeded returns how many copies of each Job of a JobSet that begins have succeeded before.
func succeeded(o *Observed) map[string]int {
	out := map[string]int{}
	if !o.anew {
		return out
	}
	raw, _, _ := unstructured.NestedSlice(o.Object, "status", "replicatedJobsStatus")
	for _, of := range raw {
		if status, is := of.(map[string]any); is {
			n, _, _ := unstructured.NestedInt64(status, "succeeded")
			out[text(status, "name")] = int(n)
		}
	}
	return out
}

const untilComplete = "Complete"

// completed returns the Jobs of a JobSet that are complete, since others have pods which are made only then.
func completed(o *Observed, jobs []replicatedJob) map[string]bool {
	begun, past := map[string]bool{}, map[string]bool{}
	for _, m := range membersOf(o) {
		begun[m.Part.Name] = true
	}
	for i := len(jobs) - 1; i >= 0; i-- { // a Job depends on those before it
		if !begun[jobs[i].Name] && !past[jobs[i].Name] {
			continue
		}
		for _, d := range jobs[i].DependsOn {
			begun[d.Name], past[d.Name] = true, past[d.Name] || d.Status == untilComplete
		}
	}
	for name, is := range past {
		if !is {
			delete(past, name)
		}
	}
	return past
}
