package kueue

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

func object(t interface{ Fatal(...any) }, text string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestEveryKind has workloads of many kinds: each is paid for and placed here, and is Kueue's no more, wherever its
// templates and Kueue's words are.
func TestEveryKind(t *testing.T) {
	const pods, queue = "{spec: {containers: [{name: c}]}}", "labels: {kueue.x-k8s.io/queue-name: q}"
	for name, text := range map[string]string{
		"Deployment": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, " + queue +
			"}, spec: {replicas: 2, template: " +
			pods + "}}",
		"RayCluster": "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r, " + queue + "}, spec: {suspend: true, " +
			"headGroupSpec: {template: " + pods + "}, workerGroupSpecs: [{groupName: w, replicas: 2, template: " + pods + "}]}}",
		"MPIJob": "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: m, " + queue + "}, spec: {runPolicy: " +
			"{suspend: true}, mpiReplicaSpecs: {Launcher: {template: " + pods + "}, Worker: {replicas: 2, template: " +
			pods + "}}}}",
		"AppWrapper": "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a, " + queue +
			"}, spec: " +
			"{suspend: true, components: [{template: {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: " +
			"" + pods +
			"}}}]}}",
		"Pod": "{apiVersion: v1, kind: Pod, metadata: {name: p, " + queue + "}, spec: {containers: [{name: c}]}}",
		"a template with the label": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {template: " +
			"{metadata: {" +
			queue + "}, spec: {containers: [{name: c}]}}}}",
	} {
		out, _, err := Translate([]*unstructured.Unstructured{object(t, text)},
			Choices{Owners: map[string]string{"q": "org:a"}})
		if err != nil || len(out) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		written, err := yaml.Marshal(out[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{"kueue", "suspend"} {
			if strings.Contains(string(written), left) {
				t.Errorf("%s: %s is left in\n%s", name, left, written)
			}
		}
		if out[0].GetAnnotations()[rqv1.AnnotationOwner] != "org:a" {
			t.Errorf("%s: nobody pays:\n%s", name, written)
		}
		if n := strings.Count(string(written),
			"schedulerName: jobtree"); n != len(group.TemplatesOf(out[0].Object)) || n == 0 {
			t.Errorf("%s: %d templates are for jobtree:\n%s", name, n, written)
		}
	}
}

// TestNothingElse leaves everything alone that is not Kueue's, and what was given as it was given.
func TestNothingElse(t *testing.T) {
	words := rapid.SampledFrom([]string{"kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/unheard", "app", "metadata", "spec",
		"suspend", "containers", "template", "labels", "annotations", "finalizers", "status", "replicas"})
	rapid.Check(t, func(rt *rapid.T) {
		var draw func(depth int) any
		draw = func(depth int) any {
			switch rapid.IntRange(0, 4-min(depth, 4)).Draw(rt, "what") {
			case 0:
				return rapid.SampledFrom([]any{"kueue.x-k8s.io/managed", "q", true, int64(3), nil}).Draw(rt, "value")
			case 1:
				return []any{draw(depth + 1)}
			default:
				m := map[string]any{}
				for _, key := range rapid.SliceOfN(words, 0, 3).Draw(rt, "keys") {
					m[key] = draw(depth + 1)
				}
				return m
			}
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
			"metadata": map[string]any{"name": "x"}, "spec": draw(0)}}
		before := o.DeepCopy()
		out, notes, err := Translate([]*unstructured.Unstructured{o}, Choices{Owner: "org:a"})
		if !cmp.Equal(before.Object, o.Object) {
			rt.Fatalf("what was given is changed: %v", o.Object)
		}
		if err == nil && queueOf(out[0]) != "" {
			rt.Fatalf("a queue is named still: %v, told %v", out[0].Object, notes)
		}
	})
}
