// Command podtemplate edits the schema below spec.template in the Run's CustomResourceDefinition.
//
// It drops the descriptions: they repeat the documentation of pods and are four fifths of the file, and without them
// `kubectl apply` can store the manifest in its last-applied annotation, which is limited to 256 KiB.
//
// It narrows quantities and int-or-strings to what their Go types can decode. One stored Run that does not decode would
// keep the scheduler from listing any.
package main

import (
	"fmt"
	"math"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := edit(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// edit rewrites one CustomResourceDefinition in place. It fails when the file has no version with a spec.template.
func edit(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	versions, _, err := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, version := range versions.([]any) {
		path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "template", "properties"}
		fields, found, err := unstructured.NestedFieldNoCopy(version.(map[string]any), path...)
		if err != nil || !found {
			return fmt.Errorf("%s: no schema of spec.template: %v", file, err)
		}
		walk(fields, dropDescription, narrow)
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, data, 0o644)
}

// walk applies edits to every map below a node.
func walk(node any, edits ...func(map[string]any)) {
	switch node := node.(type) {
	case map[string]any:
		for _, edit := range edits {
			edit(node)
		}
		for _, child := range node {
			walk(child, edits...)
		}
	case []any:
		for _, child := range node {
			walk(child, edits...)
		}
	}
}

// dropDescription leaves a property that happens to be named description alone: its value is a schema, not a string.
func dropDescription(node map[string]any) {
	if _, isText := node["description"].(string); isText {
		delete(node, "description")
	}
}

// quantity matches a decimal with a suffix or an exponent of at most two digits.
const quantity = `^[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`

// narrow bounds the integer in an int-or-string, and refuses the exponents that the pattern of quantities lets through.
func narrow(node map[string]any) {
	if node["x-kubernetes-int-or-string"] != true {
		return
	}
	if _, isQuantity := node["pattern"]; isQuantity {
		node["pattern"] = quantity
		return
	}
	node["minimum"], node["maximum"] = math.MinInt32, math.MaxInt32
}
