package kueue

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// kept are the labels and annotations of Kueue's that jobtree reads too.
var kept = []string{Prefix + "pod-group-name", Prefix + "pod-group-total-count"}

// provisioning begins the annotations that Kueue hands on to autoscalers.
const provisioning = "provreq." + Prefix

// times say for how many seconds a workload may run.
var times = []string{Prefix + "max-exec-time-seconds", provisioning + "maxRunDurationSeconds"}

// silent are those of which nobody misses anything.
var silent = []string{labelQueue, Prefix + "managed"}

// advice is what to do in place of others.
var advice = map[string]string{
	Prefix + "podset-required-topology": "to say how many GPUs share a fast-fabric domain, use annotation " +
		rqv1.AnnotationGroupGPUs,
	Prefix + "podset-preferred-topology":     "pods are placed close to each other anyway",
	Prefix + "podset-unconstrained-topology": "pods are placed close to each other anyway",
	Prefix + "job-min-parallelism": "to say with how many GPUs it may start, use annotation " +
		rqv1.AnnotationMinWidth,
	Prefix + "pod-group-fast-admission": "a group of pods starts once all of them are there",
	Prefix + "retriable-in-group":       "the controller of the pods decides whether to replace them",
}

// eachMetadata calls a function with the metadata of an object and of all that is in it.
func eachMetadata(in map[string]any, with func(metadata map[string]any)) {
	for _, key := range slices.Sorted(maps.Keys(in)) {
		switch value := in[key].(type) {
		case map[string]any:
			if key == "metadata" || key == "podMetadata" { // as Argo calls that of its pods
				with(value)
			} else if key != "status" {
				eachMetadata(value, with)
			}
		case []any:
			for _, item := range value {
				if m, isMap := item.(map[string]any); isMap {
					eachMetadata(m, with)
				}
			}
		}
	}
}

// tidy takes what is Kueue's out of some metadata. What jobtree has a word for goes into what is said of the object.
func (t *translation) tidy(o *unstructured.Unstructured, metadata map[string]any, said map[string]string) {
	for _, section := range []string{"labels", "annotations"} {
		pairs, _ := metadata[section].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			if !strings.HasPrefix(key, Prefix) && !strings.HasPrefix(key, provisioning) || slices.Contains(kept, key) {
				continue
			}
			value, _ := pairs[key].(string)
			delete(pairs, key)
			t.replace(o, key, value, said)
		}
		if pairs != nil && len(pairs) == 0 {
			delete(metadata, section)
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	finalizers = slices.DeleteFunc(finalizers, func(f any) bool {
		text, _ := f.(string)
		return strings.HasPrefix(text, Prefix)
	})
	if delete(metadata, "finalizers"); len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
}

// mostSeconds is the longest maxDuration that a Run may have: 999999 hours.
const mostSeconds = 999999 * 3600

// replace says in jobtree's words what a label or annotation of Kueue's says, or tells what to do in its place.
func (t *translation) replace(o *unstructured.Unstructured, key, value string, said map[string]string) {
	seconds, err := strconv.Atoi(value)
	switch {
	case slices.Contains(silent, key):
	case slices.Contains(times, key) && err == nil && seconds > 0 && seconds <= mostSeconds:
		said[rqv1.AnnotationMaxDuration] = (time.Duration(seconds) * time.Second).String()
	case key == Prefix+"priority-class" && t.PriorityClass != "":
		t.note(o, "%s: %s is left out: PriorityClass %s orders it among the workloads of its owner alone", key, value,
			t.PriorityClass)
	case key == Prefix+"priority-class":
		t.note(o, "%s: %s is left out: here a PriorityClass orders workloads among those of their owner alone; name one "+
			"with "+
			"--priority-class", key, value)
	case advice[key] != "":
		t.note(o, "%s: %s is left out: %s", key, value, advice[key])
	default:
		t.note(o, "%s: %s is left out: jobtree has nothing for it", key, value)
	}
}

// deadlines tells of Jobs whose time runs while they wait: Kueue suspends those that wait, and theirs does not.
func (t *translation) deadlines(o *unstructured.Unstructured) {
	for _, d := range group.Deadlines(o.Object) {
		t.note(o, "%s: %d runs out while its pods wait, too, which it does not under Kueue: leave it out, and say how "+
			"long it may run by annotation %s", d.Path, d.Seconds, rqv1.AnnotationMaxDuration)
	}
}

// ofServer are the fields of metadata that the API server writes.
var ofServer = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// clean takes out what the API server has written into an object that was read from it.
func (t *translation) clean(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")
	for _, field := range ofServer {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	const controller = "batch.kubernetes.io/controller-uid"
	labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
	if labels[controller] == "" {
		return
	}
	unstructured.RemoveNestedField(o.Object, "spec", "selector") // a Job's controller makes another one
	eachMetadata(o.Object, func(metadata map[string]any) {
		pairs, _ := metadata["labels"].(map[string]any)
		for _, key := range []string{controller, "controller-uid", "batch.kubernetes.io/job-name", "job-name"} {
			delete(pairs, key)
		}
	})
}
