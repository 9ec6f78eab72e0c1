// Command trim drops the field descriptions below spec.template from the Run's CustomResourceDefinition. They repeat the
// documentation of pods and are four fifths of the file; without them `kubectl apply` can store the manifest in its
// last-applied annotation, which is limited to 256 KiB.
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := trim(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// trim rewrites one CustomResourceDefinition in place. It fails when the file has no version with a spec.template.
func trim(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, version := range versions {
		path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "template", "properties"}
		fields, found, err := unstructured.NestedFieldNoCopy(version.(map[string]any), path...)
		if err != nil || !found {
			return fmt.Errorf("%s: no schema of spec.template: %v", file, err)
		}
		dropDescriptions(fields)
	}
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, data, 0o644)
}

// dropDescriptions leaves a property that happens to be named description alone: its value is a schema, not a string.
func dropDescriptions(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if _, isText := node["description"].(string); isText {
			delete(node, "description")
		}
		for _, child := range node {
			dropDescriptions(child)
		}
	case []any:
		for _, child := range node {
			dropDescriptions(child)
		}
	}
}
