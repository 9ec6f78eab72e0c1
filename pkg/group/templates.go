package group

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Template is what pods are made of somewhere in an object: a pod template, or the object itself where that is a pod.
type Template struct {
	// Path is where it is, such as spec.template; empty for a pod.
	Path string
	// Content has the template's metadata and spec. It is the object's own.
	Content map[string]any
	// around is what is around it in the object, outermost first.
	around []level
}

// level is a map around a template.
type level struct {
	// name is that of an item of a list; empty for another map.
	name string
	// count is how many there are of what the map describes, and counted that it says so.
	count   int
	counted bool
	// indexed says that they have numbers.
	indexed     bool
	annotations map[string]string
}

// TemplatesOf finds what pods are made of in an object of any kind: whatever has a spec with containers.
func TemplatesOf(object map[string]any) []Template {
	var out []Template
	find(object, "", nil, &out)
	return out
}

func find(in map[string]any, path string, around []level, out *[]Template) {
	if isTemplate(in) {
		*out = append(*out, Template{path, in, around})
		return
	}
	around = append(slices.Clip(around), levelOf(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		below := key
		if path != "" {
			below = path + "." + key
		}
		switch value := in[key].(type) {
		case map[string]any:
			if key != "metadata" && key != "status" {
				find(value, below, around, out)
			}
		case []any:
			for i, item := range value {
				if m, isMap := item.(map[string]any); isMap {
					find(m, below+"["+strconv.Itoa(i)+"]", around, out)
				}
			}
		}
	}
}

func isTemplate(m map[string]any) bool {
	spec, _ := m["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return false
	}
	_, isMap := containers[0].(map[string]any)
	return isMap
}

// levelOf reads what a map says of how many there are of what it describes, in the words of the kinds that there are:
// replicas, or as many as run at a time of a number of completions.
func levelOf(m map[string]any) level {
	l := level{count: 1}
	l.name, _ = m["name"].(string)
	l.indexed = m["completionMode"] == "Indexed"
	l.annotations, _, _ = unstructured.NestedStringMap(m, "metadata", "annotations")
	for _, word := range []string{"replicas", "parallelism"} {
		if n, ok := m[word].(int64); ok {
			l.count, l.counted = int(min(max(n, 0), maxPods)), true
		}
	}
	if n, ok := m["completions"].(int64); ok && l.counted {
		l.count = int(min(int64(l.count), max(n, 0)))
	}
	return l
}
