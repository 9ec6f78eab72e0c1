package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// mostImagined is how many pods of an object are imagined at most.
const mostImagined = 20000

// Imagine returns the groups of pods that there would be if some objects were made, in the objects' order. Its error
// names an object of which there would be none, and what mends it. One that makes no pods has no groups.
func Imagine(rules Rules, objects []map[string]any) ([]*Observed, error) {
	var out []*Observed
	by := map[Key]*Observed{}
	for _, object := range objects {
		pods, above, err := podsMadeOf(object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", KeyOfObject(object), err)
		}
		for i, pod := range pods {
			key := Of(pod).Key
			unread := ""
			if last := len(above[i]) - 1; last >= 0 && rules.Reads != nil && !rules.Reads(KeyOfObject(object)) {
				above[i][last].Annotations, unread = nil, above[i][last].By
			}
			o := by[key]
			if o == nil {
				o = &Observed{Rules: rules, Key: key, Above: above[i], Unread: unread}
				by[key], out = o, append(out, o)
			}
			o.Pods = append(o.Pods, pod)
		}
	}
	for _, o := range out {
		if err := o.find(objects); err != nil {
			return nil, err
		}
		none := *o
		none.Pods = nil
		s := ShapeOf(&none)
		o.Pods = slices.DeleteFunc(o.Pods, func(pod *corev1.Pod) bool { // made only once others have ended
			return len(s.parts) > 0 && o.GPUs(&pod.Spec) > 0 && s.partOf(pod) == nil
		})
	}
	return out, nil
}

// find has a group know the object that it is known by, if that is among some.
func (o *Observed) find(objects []map[string]any) error {
	for _, object := range objects {
		if o.Key.API != "" && o.Key.knownBy(KeyOfObject(object)) {
			o.Object = object
			if said := saidBy(object); !slices.ContainsFunc(o.Above, func(s Said) bool { return s.By == said.By }) {
				o.Above = slices.Insert(slices.Clone(o.Above), 0, said)
			}
		}
	}
	if o.Object == nil && Counts(o.Key) {
		return fmt.Errorf("pod %s belongs to %s, which says how many pods there are and is not in the given files: add it",
			o.Pods[0].Name, o.Key)
	}
	return nil
}

// knownBy reports whether a group is known by an object, or by what that makes.
func (k Key) knownBy(is Key) bool {
	by := Key{k.Namespace, k.API, k.Kind, ObjectName(k)}
	return is == by || slices.ContainsFunc(kinds, func(w written) bool {
		return w.api == k.API && w.kind == k.Kind && slices.Contains(w.makers, is.Kind) &&
			is == Key{by.Namespace, by.API, is.Kind, by.Name}
	})
}

// podsMadeOf returns the pods that an object would have made at first, and for each what is said above it.
func podsMadeOf(object map[string]any) (pods []*corev1.Pod, above [][]Said, err error) {
	key, templates := KeyOfObject(object), TemplatesOf(object)
	var others []string
	for i := range templates {
		t := &templates[i]
		model := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.Content, model); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		if !Candidate(model) {
			others = append(others, fmt.Sprintf("schedulerName: %s to %s", rqv1.SchedulerName,
				strings.TrimPrefix(t.Path+".spec", ".")))
			continue
		}
		model.Namespace = key.Namespace
		if t.Path == "" {
			return []*corev1.Pod{model}, [][]Said{nil}, nil
		}
		if t.copies() > mostImagined-len(pods) {
			return nil, nil, fmt.Errorf("it has more than %d pods, which are too many to plan before they exist",
				mostImagined)
		}
		made := t.imagine(object, key, i, model)
		pods = append(pods, made...)
		for range made {
			above = append(above, t.saidAround(object))
		}
	}
	if len(pods) == 0 && len(others) > 0 {
		return nil, nil, fmt.Errorf("its pods are for another scheduler: add %s", strings.Join(others, ", and "))
	}
	return pods, above, nil
}

// saidAround returns what the maps around a template say by annotations, as the objects do that are made of them, and
// then the object itself.
func (t *Template) saidAround(object map[string]any) (out []Said) {
	for _, l := range slices.Backward(t.around[1:]) {
		if len(l.annotations) > 0 {
			out = append(out, Said{By: "what makes the pods of " + t.Path, Annotations: l.annotations})
		}
	}
	return append(out, saidBy(object))
}

// imagine returns the pods that an object's controller would make of its i-th template, as that marks them.
func (t *Template) imagine(object map[string]any, key Key, i int, model *corev1.Pod) (out []*corev1.Pod) {
	w := slices.IndexFunc(kinds, func(w written) bool {
		return w.api == key.API && (w.kind == key.Kind || slices.Contains(w.makers, key.Kind))
	})
	part := -1
	if w >= 0 && kinds[w].part != "" {
		part = t.part()
	}
	for n := range t.copies() {
		pod := *model
		pod.Labels, pod.Annotations = map[string]string{}, map[string]string{}
		maps.Copy(pod.Labels, model.Labels)
		maps.Copy(pod.Annotations, model.Annotations)
		at, name := make([]int, len(t.around)), []string{key.Name}
		for l := len(at) - 1; l >= 0; l-- {
			at[l], n = n%t.around[l].count, n/t.around[l].count
		}
		for l := range at {
			called := t.around[l].name
			if l == part {
				called = t.around[l].called()
			}
			if called != "" {
				name = append(name, called)
			}
			if t.around[l].counted {
				name = append(name, strconv.Itoa(at[l]))
			}
		}
		pod.Name = strings.Join(name, "-")
		if w < 0 || kinds[w].mark(&pod, object, t, at, i) {
			out = append(out, &pod)
		}
	}
	return out
}

// mark writes on a pod what a kind of controller writes on the one that it makes of the i-th template, at a place in
// each of the levels around it. It reports whether there is such a pod.
func (w *written) mark(pod *corev1.Pod, object map[string]any, t *Template, at []int, i int) bool {
	part, counted := -1, []int{}
	if w.part != "" {
		part = t.part()
	}
	for l := range t.around {
		if t.around[l].counted {
			counted = append(counted, l)
		}
	}
	pod.Labels[w.name] = KeyOfObject(object).Name
	if w.by != "" {
		pod.Labels[w.by] = w.is[0]
	}
	if w.with != "" {
		pod.Labels[w.with] = "0"
		if len(counted) > 0 {
			pod.Labels[w.with] = strconv.Itoa(at[counted[0]])
		}
	}
	for _, late := range w.late {
		for _, l := range t.around {
			if value := l.annotations[late]; value != "" {
				pod.Annotations[late] = value
			}
		}
	}
	if w.size != "" {
		size, found, _ := unstructured.NestedInt64(object, w.sizeAt...)
		if !found {
			size = 1
		}
		pod.Annotations[w.size], pod.Labels[w.index] = strconv.FormatInt(size, 10), strconv.Itoa(i)
		return int64(i) < size
	}
	if part < 0 && !t.around[len(t.around)-1].indexed {
		return true
	}
	index := 0
	if len(counted) > 0 && counted[len(counted)-1] > part {
		index = at[counted[len(counted)-1]]
	}
	if part >= 0 {
		of := &t.around[part]
		pod.Labels[w.part] = of.called()
		switch {
		case w.partIndex == "":
			index = at[part]
		case of.hosts > 1:
			index = at[part] % of.hosts
			fallthrough
		default:
			pod.Labels[w.partIndex] = strconv.Itoa(at[part] / of.hosts)
		}
	}
	pod.Labels[w.index] = strconv.Itoa(index)
	return true
}

// KeyOfObject identifies an object of any kind as a group would be by it.
func KeyOfObject(object map[string]any) Key {
	o := &unstructured.Unstructured{Object: object}
	gvk := schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind())
	return Key{o.GetNamespace(), gvk.Group, gvk.Kind, o.GetName()}
}

// NameOf is how an object is called: KIND/NAME, and KIND/PREFIX* where the API server makes the name.
func NameOf(object map[string]any) string {
	key := KeyOfObject(object)
	if prefix, _, _ := unstructured.NestedString(object, "metadata", "generateName"); key.Name == "" && prefix != "" {
		key.Name = prefix + "*"
	}
	return key.String()
}

func saidBy(object map[string]any) Said {
	o := &unstructured.Unstructured{Object: object}
	return Said{By: KeyOfObject(object).String(), Annotations: o.GetAnnotations()}
}

// Suspended returns the path of what has an object's pods be made later; empty where nothing has.
func Suspended(object map[string]any) string {
	for _, path := range [][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}} {
		if is, _, _ := unstructured.NestedBool(object, path...); is {
			return strings.Join(path, ".")
		}
	}
	return ""
}
