package zoo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// object is one of any kind, as it is written in YAML.
type object = unstructured.Unstructured

// words are labels or annotations.
type words map[string]string

// at returns what is in an object at a path of keys that a dot separates; nil where there is nothing.
func at(in map[string]any, path string) any {
	var is any = in
	for key := range strings.SplitSeq(path, ".") {
		m, _ := is.(map[string]any)
		is = m[key]
	}
	return is
}

func textAt(in map[string]any, path string) string {
	text, _ := at(in, path).(string)
	return text
}

func mapAt(in map[string]any, path string) map[string]any {
	m, _ := at(in, path).(map[string]any)
	return m
}

// listAt returns the maps of a list.
func listAt(in map[string]any, path string) (out []map[string]any) {
	list, _ := at(in, path).([]any)
	for _, item := range list {
		out = append(out, item.(map[string]any))
	}
	return out
}

// numberAt returns a number, or another where there is none.
func numberAt(in map[string]any, path string, otherwise int) int {
	if n, is := at(in, path).(int64); is {
		return int(n)
	}
	return otherwise
}

// child is an object that a controller makes of another.
func child(of *object, apiVersion, kind, name string, spec any, labels, annotations words) *object {
	out := &object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if spec != nil {
		out.Object["spec"] = runtime.DeepCopyJSONValue(spec)
	}
	out.SetNamespace(of.GetNamespace())
	if strings.HasSuffix(name, "-") {
		out.SetGenerateName(name)
	} else {
		out.SetName(name)
	}
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	controls := true
	out.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(),
		Name: of.GetName(), UID: of.GetUID(), Controller: &controls, BlockOwnerDeletion: &controls}})
	return out
}

// pod is one that a controller makes of a template: what it writes itself counts before what the template says.
func pod(of *object, name string, template map[string]any, labels, annotations words) *object {
	all := func(key string, own words) words {
		out := words{}
		for k, v := range mapAt(template, "metadata."+key) {
			out[k] = fmt.Sprint(v)
		}
		maps.Copy(out, own)
		return out
	}
	return child(of, "v1", "Pod", name, template["spec"], all("labels", labels), all("annotations", annotations))
}

// templates calls a function with each pod template in an object, and with pods themselves.
func templates(in any, with func(template map[string]any)) {
	switch in := in.(type) {
	case []any:
		for _, item := range in {
			templates(item, with)
		}
	case map[string]any:
		if len(listAt(in, "spec.containers")) > 0 {
			with(in)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(in)) {
			templates(in[key], with)
		}
	}
}
