package group

import (
	"encoding/json"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

type kindOf struct{ api, kind string }

// shapes are how objects say how many pods they are for, by kind.
var shapes = map[kindOf]func(object map[string]any, gpus func(*corev1.PodSpec) int) Shape{
	{"scheduling.k8s.io", "PodGroup"}: func(object map[string]any, _ func(*corev1.PodSpec) int) Shape {
		if _, basic, _ := unstructured.NestedMap(object, "spec", "schedulingPolicy", "basic"); basic {
			return Shape{Least: 1} // its pods do not wait for each other
		}
		return atLeast(object, "spec", "schedulingPolicy", "gang", "minCount")
	},
	{"scheduling.x-k8s.io", "PodGroup"}: func(object map[string]any, _ func(*corev1.PodSpec) int) Shape {
		return atLeast(object, "spec", "minMember")
	},
	{"batch", "Job"}: func(object map[string]any, gpus func(*corev1.PodSpec) int) Shape {
		job := &batchv1.Job{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object, job) != nil {
			return Shape{}
		}
		return inParts([]replicated{{Replicas: 1, Spec: job.Spec}}, gpus)
	},
	// Of a JobSet those Jobs count that run together: one that begins once another is complete takes its place.
	{"jobset.x-k8s.io", "JobSet"}: func(object map[string]any, gpus func(*corev1.PodSpec) int) Shape {
		jobs, _, _ := unstructured.NestedSlice(object, "spec", "replicatedJobs")
		order, _, _ := unstructured.NestedString(object, "spec", "startupPolicy", "startupPolicyOrder")
		above, _, _ := unstructured.NestedStringMap(object, "metadata", "annotations")
		var parts []replicated
		late, later := false, false
		for _, raw := range jobs {
			text, err := json.Marshal(raw)
			job := struct {
				Name     string
				Replicas *int
				Template struct {
					Metadata metav1.ObjectMeta
					Spec     batchv1.JobSpec
				}
				DependsOn []struct{ Status string }
			}{}
			if err != nil || json.Unmarshal(text, &job) != nil {
				return Shape{}
			}
			p := replicated{Name: job.Name, Replicas: 1, Spec: job.Template.Spec, Later: len(job.DependsOn) > 0 || later,
				Led: exclusive(above) || exclusive(job.Template.Metadata.Annotations)}
			later = later || order == "InOrder" && gpus(&p.Spec.Template.Spec) > 0
			if job.Replicas != nil {
				p.Replicas = *job.Replicas
			}
			late = late || len(job.DependsOn) > 0
			if !slices.ContainsFunc(job.DependsOn, func(d struct{ Status string }) bool { return d.Status == "Complete" }) {
				parts = append(parts, p)
			}
		}
		s := inParts(parts, gpus)
		s.Late = late || order == "InOrder"
		return s
	},
}

// replicated is a Job of which there are several copies.
type replicated struct {
	Name     string
	Replicas int
	Spec     batchv1.JobSpec
	// Later says that it is made once others run, and Led that its other pods are once its first one is bound.
	Later, Led bool
}

// exclusiveTopology has the Jobs of a JobSet be led, unless nodes are labelled for them beforehand.
const (
	exclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	domainsSaid       = "alpha.jobset.sigs.k8s.io/node-selector"
)

func exclusive(annotations map[string]string) bool {
	_, said := annotations[domainsSaid]
	return annotations[exclusiveTopology] != "" && !said
}

// atLeast is the shape by a number of pods, whatever they ask for.
func atLeast(object map[string]any, path ...string) Shape {
	n, _, _ := unstructured.NestedInt64(object, path...)
	return Shape{Least: int(max(n, 0))}
}

// inParts is the shape by Jobs: as many ranks as pods with GPUs run at a time.
func inParts(jobs []replicated, gpus func(*corev1.PodSpec) int) (s Shape) {
	for i := range jobs {
		job := &jobs[i]
		if gpus(&job.Spec.Template.Spec) == 0 {
			continue
		}
		size := 1
		if p := job.Spec.Parallelism; p != nil {
			size = int(*p)
		}
		if c := job.Spec.Completions; c != nil {
			size = min(size, int(*c))
		}
		if size <= 0 || job.Replicas <= 0 {
			continue
		}
		s.parts = append(s.parts, part{name: job.Name, first: s.Ranks, size: size, copies: job.Replicas})
		s.Ranks += size * job.Replicas
		switch {
		case job.Later:
		case job.Led:
			s.First += job.Replicas
		default:
			s.First += size * job.Replicas
		}
	}
	s.Least = s.Ranks
	return s
}

// Says reports whether the objects of a kind say when they have ended.
func Says(k Key) bool { return k.API == "batch" || k.API == "jobset.x-k8s.io" }

// Counts reports whether the objects of a kind say how many pods a group has, so that it cannot be known without.
func Counts(k Key) bool { return shapes[kindOf{k.API, k.Kind}] != nil }

// ObjectName returns the name of what a group is known by: several groups may be one object's.
func ObjectName(k Key) string {
	if k.API == "leaderworkerset.x-k8s.io" {
		return k.Name[:strings.LastIndexByte(k.Name, '-')]
	}
	return k.Name
}

// End returns how an object says that it has ended, by its conditions; empty where it does not.
func End(object map[string]any) rqv1.RunPhase {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, raw := range conditions {
		c, _ := raw.(map[string]any)
		if c["status"] != "True" {
			continue
		}
		switch c["type"] {
		case "Complete", "Completed", "Succeeded":
			return rqv1.RunCompleted
		case "Failed":
			return rqv1.RunFailed
		}
	}
	return ""
}
