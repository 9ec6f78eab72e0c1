// Package kueue has workloads that were written for Kueue be scheduled by jobtree: it says who pays where they name a
// queue. It is pure: objects go in, and objects and what could not be said in them come out.
package kueue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// Choices are what the workloads do not say.
type Choices struct {
	// Owners are who pays for what a queue is named for, and Owner for all other queues; empty for nobody.
	Owners map[string]string
	Owner  string
	// Namespace is given to objects that have none.
	Namespace string
	// GPUType, Checkpoint and PriorityClass are said of all workloads, if they are given.
	GPUType, PriorityClass string
	Checkpoint             time.Duration
}

// Note is what somebody should know of an object who takes it over.
type Note struct {
	Object, Text string
}

// String names the object.
func (n Note) String() string { return n.Object + ": " + n.Text }

// Prefix begins Kueue's labels and annotations, and its API group ends them.
const (
	Prefix     = api + "/"
	api        = "kueue.x-k8s.io"
	labelQueue = Prefix + "queue-name"
)

// translation is one of several objects.
type translation struct {
	Choices
	notes []Note
}

// Translate changes objects so that jobtree places their pods. Those that name no queue stay as they are, and Kueue's
// own are left out. The error names the object, and what mends it.
func Translate(objects []*unstructured.Unstructured, c Choices) ([]*unstructured.Unstructured, []Note, error) {
	t := &translation{Choices: c}
	var out []*unstructured.Unstructured
	queued := 0
	for _, o := range objects {
		if o.GroupVersionKind().Group == api {
			t.note(o, "it is Kueue's and left out: what is a ClusterQueue there is a Budget here, and the rest is not needed")
			continue
		}
		o = o.DeepCopy()
		if t.Namespace != "" && o.GetNamespace() == "" {
			o.SetNamespace(t.Namespace)
		}
		out = append(out, o)
		queue := queueOf(o)
		if queue == "" {
			continue
		}
		queued++
		if err := t.workload(o, queue); err != nil {
			return nil, nil, err
		}
	}
	if queued == 0 {
		return nil, nil, fmt.Errorf("no object has label %s, which names the queue of a workload", labelQueue)
	}
	return out, t.notes, nil
}

func (t *translation) note(o *unstructured.Unstructured, format string, args ...any) {
	n := Note{group.NameOf(o.Object), fmt.Sprintf(format, args...)}
	if !slices.Contains(t.notes, n) {
		t.notes = append(t.notes, n)
	}
}

// queueOf returns the queue that an object, or what its pods are made of, names.
func queueOf(o *unstructured.Unstructured) (queue string) {
	eachMetadata(o.Object, func(metadata map[string]any) {
		labels, _ := metadata["labels"].(map[string]any)
		named, _ := labels[labelQueue].(string)
		queue = cmp.Or(queue, named)
	})
	return queue
}

// workload changes an object that names a queue.
func (t *translation) workload(o *unstructured.Unstructured, queue string) error {
	owner := cmp.Or(t.Owners[queue], t.Owner)
	said := map[string]string{}
	switch written := o.GetAnnotations()[rqv1.AnnotationOwner]; {
	case written != "" && owner != "" && written != owner:
		t.note(o, "annotation %s says that %s pays, and that stands", rqv1.AnnotationOwner, written)
	case written != "":
	case owner == "":
		return fmt.Errorf("%s: label %s: %s: nobody is named who pays for what is in this queue: say --queue-owner "+
			"%s=OWNER, "+
			"or --owner for all queues", group.NameOf(o.Object), labelQueue, queue, queue)
	default:
		said[rqv1.AnnotationOwner] = owner
	}
	if t.GPUType != "" {
		said[rqv1.AnnotationGPUType] = t.GPUType
	}
	if t.Checkpoint > 0 {
		said[rqv1.AnnotationCheckpoint] = t.Checkpoint.String()
	}
	eachMetadata(o.Object, func(metadata map[string]any) { t.tidy(o, metadata, said) })
	t.clean(o)
	t.say(o, said)
	if path := group.Suspended(o.Object); path != "" {
		unstructured.RemoveNestedField(o.Object, strings.Split(path, ".")...)
		t.note(o, "%s: true is left out: it is for Kueue to end, and here the pods themselves wait for their places", path)
	}
	t.deadlines(o)
	t.templates(o)
	t.alone(o)
	return nil
}

// say has an object say what jobtree reads or, where the scheduler may not read such an object, what its pods are made
// of.
func (t *translation) say(o *unstructured.Unstructured, said map[string]string) {
	if group.ReadsKnown(group.KeyOfObject(o.Object)) {
		annotate(o.Object, said)
		return
	}
	templates := group.TemplatesOf(o.Object)
	for _, template := range templates {
		annotate(template.Content, said)
	}
	if len(templates) == 0 && len(said) > 0 {
		t.note(o, "the scheduler may not read it, as long as no administrator adds its kind to a ClusterRole with label "+
			"%s/group-reader: \"true\": see that its pods, or their namespace, have annotation %s", rqv1.GroupName,
			strings.Join(slices.Sorted(maps.Keys(said)), ", "))
	}
}

// annotate adds annotations to an object, or to what pods are made of.
func annotate(in map[string]any, with map[string]string) {
	o := &unstructured.Unstructured{Object: in}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, with)
	o.SetAnnotations(annotations)
}

// templates has jobtree place the pods that are made of an object's templates.
func (t *translation) templates(o *unstructured.Unstructured) {
	templates := group.TemplatesOf(o.Object)
	for _, template := range templates {
		spec, _ := template.Content["spec"].(map[string]any)
		if was, _ := spec["schedulerName"].(string); was != "" && was != corev1.DefaultSchedulerName &&
			was != rqv1.SchedulerName {
			t.note(o, "schedulerName: %s is replaced", was)
		}
		spec["schedulerName"] = rqv1.SchedulerName
		if t.PriorityClass != "" {
			spec["priorityClassName"] = t.PriorityClass
		}
		if m, isMap := template.Content["metadata"].(map[string]any); isMap && len(m) == 0 {
			delete(template.Content, "metadata")
		}
		gates, _ := spec["schedulingGates"].([]any)
		gates = slices.DeleteFunc(gates, func(gate any) bool {
			g, _ := gate.(map[string]any)
			name, _ := g["name"].(string)
			return strings.HasPrefix(name, Prefix)
		})
		if delete(spec, "schedulingGates"); len(gates) > 0 {
			spec["schedulingGates"] = gates
		}
	}
	if len(templates) == 0 {
		t.note(o, "there is no pod template in it: see that what its pods are made of has schedulerName: %s",
			rqv1.SchedulerName)
	}
}

// alone says so where Kueue admits several pods as one, and each is placed by itself here.
func (t *translation) alone(o *unstructured.Unstructured) {
	for _, object := range within(o.Object) {
		groups, err := group.Imagine(group.Rules{GPUs: func(*corev1.PodSpec) int { return 1 }}, []map[string]any{object})
		if err != nil || len(groups) < 2 || groups[0].Key.Kind != "Pod" {
			continue
		}
		fix := fmt.Sprintf("annotations %s and %s on its pod template", rqv1.AnnotationGroup, rqv1.AnnotationGroupSize)
		kind := (&unstructured.Unstructured{Object: object}).GroupVersionKind().GroupKind()
		if kind == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
			fix = "completionMode: Indexed"
		}
		t.note(o, "Kueue admits its pods together, and here each pod starts by itself: if they belong together, give it "+
			"%s",
			fix)
	}
}

// within returns the objects that an object wraps, as an AppWrapper does, and itself where it wraps none.
func within(object map[string]any) (out []map[string]any) {
	var look func(in any)
	look = func(in any) {
		switch in := in.(type) {
		case map[string]any:
			if is := (&unstructured.Unstructured{Object: in}); is.GetKind() != "" && is.GetAPIVersion() != "" &&
				in["spec"] != nil {
				out = append(out, in)
				return
			}
			for _, key := range slices.Sorted(maps.Keys(in)) {
				look(in[key])
			}
		case []any:
			for _, item := range in {
				look(item)
			}
		}
	}
	look(object["spec"])
	if len(out) == 0 {
		return []map[string]any{object}
	}
	return out
}
