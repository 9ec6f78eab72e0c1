package group

import (
	"maps"
	"slices"
	"strconv"
	"strings"

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
	// name is that of an item of a list; empty for another map. key is where another map is in the one around it.
	name, key string
	// count is how many there are of what the map describes, and counted that it says so.
	count   int
	counted bool
	// hosts is how many of those are one, spread over so many nodes.
	hosts int
	// indexed says that they have numbers.
	indexed     bool
	annotations map[string]string
}

// TemplatesOf finds what pods are made of in an object of any kind: whatever has a spec with containers.
func TemplatesOf(object map[string]any) []Template {
	var out []Template
	find(object, "", "", nil, &out)
	return out
}

func find(in map[string]any, at, path string, around []level, out *[]Template) {
	if isTemplate(in) {
		*out = append(*out, Template{path, in, around})
		return
	}
	around = append(slices.Clip(around), levelOf(in, at))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		below := key
		if path != "" {
			below = path + "." + key
		}
		switch value := in[key].(type) {
		case map[string]any:
			if key != "metadata" && key != "status" {
				find(value, key, below, around, out)
			}
		case []any:
			for i, item := range value {
				if m, isMap := item.(map[string]any); isMap {
					find(m, "", below+"["+strconv.Itoa(i)+"]", around, out)
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

// levelOf reads what a map at a key says of how many there are of what it describes, in the words of the kinds that
// there are: replicas, as far as their bounds let, each of so many hosts, or as many as run at a time of a number of
// completions.
func levelOf(m map[string]any, at string) level {
	l := level{key: at, count: 1, hosts: 1}
	l.name, _ = m["name"].(string)
	if l.name == "" {
		l.name, _ = m["groupName"].(string)
	}
	l.indexed = m["completionMode"] == "Indexed"
	l.annotations, _, _ = unstructured.NestedStringMap(m, "metadata", "annotations")
	said := func(word string, otherwise int) (n int) {
		of, ok := m[word].(int64)
		if !ok {
			return otherwise
		}
		return int(min(max(of, 0), maxPods))
	}
	if n := said("replicas", said("parallelism", said("minReplicas", -1))); n >= 0 {
		l.count, l.counted = min(max(n, said("minReplicas", 0)), said("maxReplicas", maxPods)), true
	}
	if l.counted {
		l.count, l.hosts = min(l.count, said("completions", maxPods)), max(1, said("numOfHosts", 1))
		l.count = min(l.count*l.hosts, maxPods)
	}
	if _, nested := m["template"]; nested && m["suspend"] == true && l.name != "" {
		l.count = 0 // one of several parts, whose pods are not made
	}
	return l
}

// called is how the pods that are made of what a map describes call it, in the words of the kinds that there are.
func (l *level) called() string {
	if l.name != "" {
		return l.name
	}
	return strings.TrimSuffix(strings.ToLower(l.key), "spec")
}

// part returns which of the levels around a template is a part of its object: the innermost that has a name, else the
// innermost; -1 where there is none.
func (t *Template) part() int {
	for i, l := range slices.Backward(t.around) {
		if l.name != "" {
			return i
		}
	}
	return len(t.around) - 1
}

// copies is how many pods are made of a template.
func (t *Template) copies() int {
	n := 1
	for _, l := range t.around {
		n = min(n*l.count, maxPods)
	}
	return n
}
