package group

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

type kindOf struct{ api, kind string }

// shapes are how objects say how many pods they are for, by kind.
var shapes = map[kindOf]func(o *Observed) Shape{
	{"scheduling.k8s.io", "PodGroup"}: func(o *Observed) Shape {
		if _, basic, _ := unstructured.NestedMap(o.Object, "spec", "schedulingPolicy", "basic"); basic {
			return Shape{Least: 1} // its pods do not wait for each other
		}
		return atLeast(o.Object, "spec", "schedulingPolicy", "gang", "minCount")
	},
	{"scheduling.x-k8s.io", "PodGroup"}: func(o *Observed) Shape {
		s := atLeast(o.Object, "spec", "minMember")
		s.Least = max(1, s.Least) // without that its pods do not wait for each other
		return s
	},
	{"batch", "Job"}: func(o *Observed) Shape {
		job := &batchv1.Job{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, job) != nil {
			return Shape{}
		}
		withoutFailed(job, o.failed)
		if left := job.Spec.Completions; o.anew && left != nil {
			*left = max(0, *left-job.Status.Succeeded)
		}
		return inParts([]replicated{{Replicas: 1, Spec: job.Spec}}, o.GPUs)
	},
	{"jobset.x-k8s.io", "JobSet"}: ofJobs,
	{"ray.io", "RayCluster"}:      inTemplates,
	{apiKubeflow, "MPIJob"}:       ofMPI,
	{apiKubeflow, "PyTorchJob"}:   inTemplates,
	{apiKubeflow, "TFJob"}:        inTemplates,
	{apiKubeflow, "JAXJob"}:       inTemplates,
	{apiKubeflow, "XGBoostJob"}:   inTemplates,
	{apiKubeflow, "PaddleJob"}:    inTemplates,
}

// withoutFailed takes those indexes of a Job out that have failed for good: no pods of theirs come. Where pods have the
// ranks of others before them, that is so of ranks whose pods have failed when fewer are left than run at a time.
func withoutFailed(job *batchv1.Job, failedRanks int32) {
	all, listed := job.Spec.Completions, job.Status.FailedIndexes
	if all == nil || listed == nil {
		return
	}
	failed, most := indexesIn(*listed), ptr.Deref(job.Spec.Parallelism, 1)
	if idle := most - (*all - job.Status.Succeeded - failed); *all > most && idle > 0 {
		job.Spec.Parallelism = ptr.To(most - min(idle, failedRanks))
	}
	*all = max(0, *all-failed)
}

// indexesIn counts the indexes of a Job that its status lists, as in 1,3-5.
func indexesIn(list string) (n int32) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseInt(from, 10, 32)
		last := first
		if isRange && err == nil {
			last, err = strconv.ParseInt(to, 10, 32)
		}
		if err == nil && last >= first {
			n += int32(last - first + 1)
		}
	}
	return n
}

// replicated is a Job of which there are several copies.
type replicated struct {
	Name     string
	Replicas int
	Spec     batchv1.JobSpec
	// Later says that it is made once others run, and Led that its other pods are once its first one is bound.
	Later, Led bool
	// Within is the node label of whose domains each copy has one for itself; empty where it has none.
	Within string
}

// exclusiveTopology has the Jobs of a JobSet be led, unless nodes are labelled for them beforehand.
const (
	exclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	domainsSaid       = "alpha.jobset.sigs.k8s.io/node-selector"
	// exclusiveGroup is what the controller of LeaderWorkerSets writes on the pods of a group that is to have a domain.
	exclusiveGroup = "leaderworkerset.sigs.k8s.io/exclusive-topology"
)

func exclusive(annotations map[string]string) bool {
	_, said := annotations[domainsSaid]
	return annotations[exclusiveTopology] != "" && !said
}

// atLeast is the shape by a number of pods, whatever they ask for.
func atLeast(object map[string]any, path ...string) Shape {
	n, _, _ := unstructured.NestedInt64(object, path...)
	return Shape{Least: int(min(max(n, 0), math.MaxInt32))}
}

// inParts is the shape by Jobs: as many ranks as pods with GPUs run at a time.
func inParts(jobs []replicated, gpus func(*corev1.PodSpec) int) (s Shape) {
	var first *replicated
	for i := range jobs {
		job, asks := &jobs[i], gpus(&jobs[i].Spec.Template.Spec)
		if asks == 0 {
			continue
		}
		size := 1
		if p := job.Spec.Parallelism; p != nil {
			size = int(*p)
		}
		if c := job.Spec.Completions; c != nil {
			size = min(size, int(*c))
		}
		copies := min(job.Replicas, math.MaxInt32)
		if size <= 0 || copies <= 0 {
			continue
		}
		if first == nil {
			first = job
		} else if has := gpus(&first.Spec.Template.Spec); asks != has {
			s.mixed = fmt.Sprintf("asks for %d GPUs for each pod of Job %s and for %d for each of Job %s", has, first.Name, asks,
				job.Name)
		}
		if job.Within != "" && !slices.Contains(s.within, job.Within) {
			s.within = append(s.within, job.Within)
		}
		s.parts = append(s.parts, part{name: job.Name, first: s.Ranks, size: size, copies: copies, led: job.Led})
		all := min(size*copies, math.MaxInt32) // which is too many, however many more there are
		s.Ranks = min(s.Ranks+all, math.MaxInt32)
		switch {
		case job.Later:
		case job.Led:
			s.First, s.Late = min(s.First+copies, s.Ranks), true
		default:
			s.First = min(s.First+all, s.Ranks)
		}
	}
	s.Least, s.apart = s.Ranks, true
	return s
}

// inTemplates is the shape by the pod templates that an object has anywhere: as many ranks of each that asks for GPUs
// as the object says that there are pods of it.
func inTemplates(o *Observed) (s Shape) {
	s.apart = true
	for _, t := range TemplatesOf(o.Object) {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(t.Content, pod) != nil {
			return Shape{}
		}
		at := t.part()
		if copies := t.copies(); at >= 0 && copies > 0 && o.GPUs(&pod.Spec) > 0 {
			p := part{name: t.around[at].called(), first: s.Ranks, size: copies, copies: 1}
			if hosts := t.around[at].hosts; hosts > 1 {
				p.size, p.copies = hosts, copies/hosts
			} else {
				s.apart = false
			}
			s.parts = append(s.parts, p)
			s.Ranks += copies
		}
	}
	s.Least, s.First = s.Ranks, s.Ranks
	return s
}

// ofMPI is the shape of an MPIJob, whose launcher may be made once its workers are ready.
func ofMPI(o *Observed) Shape {
	s := inTemplates(o)
	if text(o.Object, "spec", "launcherCreationPolicy") != "WaitForWorkersReady" {
		return s
	}
	for _, p := range s.parts {
		if p.name == "launcher" {
			s.Late, s.First = true, s.First-p.size*p.copies
		}
	}
	return s
}

// Says reports whether the objects of a kind say when they have ended.
func Says(k Key) bool { return k.API == "batch" || k.API == "jobset.x-k8s.io" || k.API == apiKubeflow }

// Counts reports whether the objects of a kind say how many pods a group has, so that it cannot be known without.
func Counts(k Key) bool { return shapes[kindOf{k.API, k.Kind}] != nil }

// ObjectName returns the name of what a group is known by: several groups may be one object's.
func ObjectName(k Key) string {
	if at := strings.LastIndexByte(k.Name, '-'); k.API == "leaderworkerset.x-k8s.io" && at >= 0 {
		return k.Name[:at]
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
