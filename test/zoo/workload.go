package zoo

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

//go:embed workloads
var files embed.FS

// Workload is something that people run.
type Workload struct {
	// Name is that of its file.
	Name string
	Expected
	objects []*object
}

// Expected is what becomes of a workload: the first document of its file.
type Expected struct {
	// GPUs are those that it holds once it runs, Groups the Runs that stand for it, and Beside its pods without GPUs that
	// run with it.
	GPUs, Groups, Beside int
	// Lost is what becomes of it when one of its pods with GPUs is lost: "one" pod is made again, "all" of the pod's group
	// are, or the workload is "over".
	Lost string
	// Told is what its pods are told instead of being started; empty for a workload that starts.
	Told string
	// Resumed says that it is suspended first, as its file has it.
	Resumed bool
}

// Workloads returns all of them, in order of their names.
func Workloads() ([]Workload, error) {
	entries, err := files.ReadDir("workloads")
	if err != nil {
		return nil, err
	}
	var out []Workload
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("workloads", entry.Name()))
		if err != nil {
			return nil, err
		}
		w := Workload{Name: strings.TrimSuffix(entry.Name(), ".yaml")}
		if err := w.parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		out = append(out, w)
	}
	return out, nil
}

func (w *Workload) parse(text string) error {
	first, rest, _ := strings.Cut(text, "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), &w.Expected); err != nil {
		return err
	}
	for document := range strings.SplitSeq(rest, "\n---\n") {
		o := &object{}
		content, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(content, &o.Object); err != nil {
			return err
		}
		if strings.Contains(document, rqv1.SchedulerName) || strings.Contains(document, rqv1.GroupName) {
			return errors.New("there is something in it that is for jobtree")
		}
		w.objects = append(w.objects, o)
	}
	if len(w.objects) == 0 {
		return errors.New("there is no object in it")
	}
	return nil
}

// in returns the workload's objects for a place: with the two lines that people add, by which its pods are placed and
// paid for, and with the GPU type of the place as the value of the label that its author selects nodes by.
func (w *Workload) in(namespace, flavor string, owner rqv1.Owner) (out []*object) {
	for _, of := range w.objects {
		o := of.DeepCopy()
		o.SetNamespace(namespace)
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = words{}
		}
		annotations[rqv1.AnnotationOwner] = string(owner)
		o.SetAnnotations(annotations)
		templates(o.Object, func(template map[string]any) {
			spec := template["spec"].(map[string]any)
			spec["schedulerName"] = rqv1.SchedulerName
			stays(template)
		})
		if o.GetKind() == "Workflow" {
			o.Object["spec"].(map[string]any)["schedulerName"] = rqv1.SchedulerName
		}
		if predictor := mapAt(o.Object, "spec.predictor"); predictor != nil {
			predictor["schedulerName"] = rqv1.SchedulerName
		}
		fill(o.Object, flavor)
		out = append(out, o)
	}
	return out
}

// stays has the kubelets of a real control plane, which are played, leave a pod running that does not say when it is
// done.
func stays(template map[string]any) {
	const key = "pod-complete.stage.kwok.x-k8s.io/delay"
	metadata := mapAt(template, "metadata")
	if metadata == nil {
		metadata = map[string]any{}
		template["metadata"] = metadata
	}
	annotations := mapAt(metadata, "annotations")
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	if annotations[key] == nil {
		annotations[key] = "1h"
	}
}

// fill has each value $flavor be the GPU type.
func fill(in any, flavor string) {
	switch in := in.(type) {
	case []any:
		for i, item := range in {
			if item == "$flavor" {
				in[i] = flavor
			}
			fill(item, flavor)
		}
	case map[string]any:
		for key, value := range in {
			if value == "$flavor" {
				in[key] = flavor
			}
			fill(value, flavor)
		}
	}
}
