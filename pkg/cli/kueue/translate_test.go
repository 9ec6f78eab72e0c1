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
		"a kind that the scheduler may not read": "{apiVersion: example.com/v1, kind: Farm, metadata: {name: f, " + queue +
			"}, spec: {a: {template: " + pods + "}, b: {template: " + pods + "}}}",
		"CronJob": "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c, " + queue + "}, spec: {jobTemplate: {spec: " +
			"{template: " + pods + "}}}}",
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
		pays := strings.Count(string(written), rqv1.AnnotationOwner+": org:a")
		read := group.ReadsKnown(group.KeyOfObject(out[0].Object))
		if read != (out[0].GetAnnotations()[rqv1.AnnotationOwner] == "org:a") ||
			!read && pays != len(group.TemplatesOf(out[0].Object)) {
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

// TestTimes has Jobs say for how long they run: what Kueue hands on to autoscalers is their maxDuration, and a deadline
// that runs while they wait is told. The label of Argo's pods names a queue as any does.
func TestTimes(t *testing.T) {
	const template, queue = "template: {spec: {containers: [{name: c}]}}", "labels: {kueue.x-k8s.io/queue-name: q}"
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: j, " + queue
	for name, c := range map[string]struct{ text, want, told string }{
		"for an autoscaler": {job + ", " +
			"annotations: {provreq.kueue.x-k8s.io/maxRunDurationSeconds: \"600\"}}, spec: {" + template + "}}", "10m0s", ""},
		"no number": {job + ", " +
			"annotations: {kueue.x-k8s.io/max-exec-time-seconds: \"9223372036854775807\"}}, spec: {" + template + "}}", "",
			"jobtree has nothing for it"},
		"a deadline": {job + "}, spec: {activeDeadlineSeconds: 3600, " + template + "}}", "",
			"spec.activeDeadlineSeconds: 3600 runs out while its pods wait"},
		"a deadline within": {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, " + queue +
			"}, spec: {jobTemplate: {spec: {activeDeadlineSeconds: 60, " + template + "}}}}", "",
			"spec.jobTemplate.spec.activeDeadlineSeconds: 60 runs out"},
		"Argo": {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w}, spec: {podMetadata: {labels: " +
			"{kueue.x-k8s.io/queue-name: q}}}}", "", "there is no pod template in it"},
	} {
		out, notes, err := Translate([]*unstructured.Unstructured{object(t, c.text)}, Choices{Owner: "org:a"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := out[0].GetAnnotations()[rqv1.AnnotationMaxDuration]; got != c.want {
			t.Errorf("%s: it runs for %q, want %q", name, got, c.want)
		}
		told := ""
		for _, n := range notes {
			told += n.String() + "\n"
		}
		if !strings.Contains(told, c.told) || c.told == "" && told != "" {
			t.Errorf("%s: it is told %q, want %q", name, told, c.told)
		}
		if raw, _ := yaml.Marshal(out[0].Object); strings.Contains(string(raw), "kueue.x-k8s.io") {
			t.Errorf("%s: Kueue's words are left:\n%s", name, raw)
		}
	}
}

// TestWhatWrapsOthers: what an AppWrapper's pods are to each other is said by what it wraps, and what has no name yet
// is called by the beginning of it.
func TestWhatWrapsOthers(t *testing.T) {
	const pods = `containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 8}}}]`
	wraps := func(component string) string {
		return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: aw, labels: ` +
			`{kueue.x-k8s.io/queue-name: q}}, spec: {components: [{template: ` + component + `}]}}`
	}
	for text, want := range map[string]string{
		wraps(`{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: l}, spec: {replicas: 2, ` +
			`leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {` + pods + `}}}}}`): "",
		wraps(`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: {spec: {` + pods +
			`}}}}`): "AppWrapper/aw: Kueue admits its pods together",
		`{apiVersion: batch/v1, kind: Job, metadata: {generateName: gen-, labels: {kueue.x-k8s.io/queue-name: q}}, spec: ` +
			`{parallelism: 2, template: {spec: {` + pods + `}}}}`: "Job/gen-*: Kueue admits its pods together",
	} {
		_, notes, err := Translate([]*unstructured.Unstructured{object(t, text)}, Choices{Owner: "org:x"})
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		for _, n := range notes {
			told += n.String() + "\n"
		}
		if !strings.Contains(told, want) || want == "" && strings.Contains(told, "by itself") {
			t.Errorf("%s: told %q, want %q", text, told, want)
		}
	}
}
