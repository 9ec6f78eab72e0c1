package group

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// inTurn is a JobSet of Jobs of 8 GPUs a pod, or none: NAME:COPIESxPODS, and then what it waits for, if anything.
func inTurn(t *testing.T, jobs ...string) *Observed {
	t.Helper()
	text := "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: llm}\nspec:\n  replicatedJobs:\n"
	for _, job := range jobs {
		name, rest, _ := strings.Cut(job, ":")
		size, after, _ := strings.Cut(rest, " ")
		copies, pods, _ := strings.Cut(size, "x")
		asks := ", resources: {limits: {nvidia.com/gpu: 8}}"
		if less, none := strings.CutSuffix(pods, "-none"); none {
			pods, asks = less, ""
		}
		text += fmt.Sprintf("  - {name: %s, replicas: %s, %s template: {spec: {parallelism: %s, template: {spec: "+
			"{containers: [{name: c%s}]}}}}}\n", name, copies, after, pods, asks)
	}
	return &Observed{Rules: testRules, Key: Key{"ns", "jobset.x-k8s.io", "JobSet", "llm"}, Types: []string{"H100"},
		Object: objectOf(t, text), Namespace: map[string]string{rqv1.AnnotationOwner: "org:team"}}
}

// after has a Job wait for another.
func after(job, status string) string {
	return fmt.Sprintf("dependsOn: [{name: %s, status: %s}],", job, status)
}

// TestJobsInTurn: what a JobSet's Jobs ask for together, before and after one is complete for which others wait.
func TestJobsInTurn(t *testing.T) {
	prepared := []string{"a:1x1", "b:1x2 " + after("a", "Complete")}
	for name, c := range map[string]struct {
		jobs  []string
		there []string // the Jobs that have a pod
		want  string
	}{
		"the first":           {prepared, []string{"a"}, "8 of H100 by 8"},
		"the second":          {prepared, []string{"a", "b"}, "16 of H100 by 8; begun"},
		"the second, alone":   {prepared, []string{"b"}, "16 of H100 by 8; begun"},
		"with one that stays": {append(prepared, "c:1x1"), []string{"a", "c"}, "16 of H100 by 8, in groups of 8"},
		"then the second":     {append(prepared, "c:1x1"), []string{"b", "c"}, "24 of H100 by 8; begun"},
		"once others are ready": {[]string{"a:1x1", "b:1x1 " + after("a", "Ready")}, []string{"a", "b"},
			"16 of H100 by 8, in groups of 8; 1 first"},
		"one without GPUs between": {[]string{"a:1x1", "m:1x1-none " + after("a", "Ready"), "b:1x1 " + after("m", "Ready")},
			[]string{"a"}, "16 of H100 by 8, in groups of 8; 1 first"},
		"one without GPUs between, in turn": {[]string{"a:1x1", "m:1x1-none " + after("a", "Complete"),
			"b:1x4 " + after("m", "Complete")}, []string{"m", "b"}, "32 of H100 by 8; begun"},
		"the third of three": {[]string{"a:1x1", "b:1x2 " + after("a", "Complete"), "c:2x2 " + after("b", "Complete")},
			[]string{"c"}, "32 of H100 by 8, in groups of 16; begun"},
	} {
		t.Run(name, func(t *testing.T) {
			o := inTurn(t, c.jobs...)
			for _, job := range c.there {
				o.Pods = append(o.Pods, ofJobSet("p-"+job, 8, job, "0", "0"))
			}
			d, s := Derive(o), ShapeOf(o)
			got := d.Problem + d.Waits + brief(d.Spec)
			if d.Spec != nil && d.Spec.Pods.Late {
				got += fmt.Sprintf("; %d first", d.Spec.Pods.First)
			}
			if s.Begun {
				got += "; begun"
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestOutgrown: what begins once a Run is complete gets its places if it fits into them, and asks anew if it does not.
func TestOutgrown(t *testing.T) {
	for name, c := range map[string]struct {
		next string
		want bool
	}{
		"as many":   {"b:1x2 ", false},
		"fewer":     {"b:1x1 ", false},
		"more":      {"b:1x3 ", true},
		"in groups": {"b:2x1 ", true},
	} {
		o := inTurn(t, "a:1x2", c.next+after("a", "Complete"))
		done := ofJobSet("done", 8, "a", "0", "0")
		done.Status.Phase = corev1.PodSucceeded
		o.Pods = []*corev1.Pod{done}
		run := &rqv1.Run{Spec: *Derive(o).Spec, Status: rqv1.RunStatus{Phase: rqv1.RunRunning}}
		if Outgrown(run, o) {
			t.Errorf("%s: it is outgrown although nothing else has begun", name)
		}
		o.Pods = append(o.Pods, ofJobSet("next", 8, "b", "0", "0"))
		if got := Outgrown(run, o); got != c.want {
			t.Errorf("%s: it is outgrown: %v", name, got)
		}
		if to := Resized(run, o, o.Pods[:1]); to != nil && (to.Malleable.MinTotalGPUs < 16 || !c.want) {
			t.Errorf("%s: it is to be %+v", name, to)
		}
	}
	o := inTurn(t, "a:1x2", "b:1x2 "+after("a", "Complete"))
	o.Pods = []*corev1.Pod{ofJobSet("other", 4, "b", "0", "0")}
	run := &rqv1.Run{Spec: rqv1.RunSpec{Resources: rqv1.RunResources{TotalGPUs: 16, GPUsPerPod: ptr.To[int32](8)}},
		Status: rqv1.RunStatus{Phase: rqv1.RunRunning}}
	if !Outgrown(run, o) {
		t.Error("pods of another size are to have its places")
	}
}

// TestJobsOfTwoSizes that are to run together are told before the second has pods.
func TestJobsOfTwoSizes(t *testing.T) {
	o := inTurn(t, "a:1x1", "b:1x1 "+after("a", "Ready"))
	jobs := o.Object["spec"].(map[string]any)["replicatedJobs"].([]any)
	limits := jobs[1].(map[string]any)
	for _, key := range []string{"template", "spec", "template", "spec"} {
		limits = limits[key].(map[string]any)
	}
	limits = limits["containers"].([]any)[0].(map[string]any)["resources"].(map[string]any)["limits"].(map[string]any)
	limits["nvidia.com/gpu"] = int64(4)
	o.Pods = []*corev1.Pod{ofJobSet("p", 8, "a", "0", "0")}
	if d := Derive(o); !strings.Contains(d.Problem, "asks for 8 GPUs for each pod of Job a and for 4 for each of Job b") {
		t.Errorf("it is told %q", d.Problem)
	}
}

// TestWhatHasCompletedBeforeAGroupBegins is none of it: its controller makes no pods for that, so that a group which is
// resumed would wait for them for ever. One that runs keeps its width.
func TestWhatHasCompletedBeforeAGroupBegins(t *testing.T) {
	job := func(status string) *Observed {
		o := inTurn(t, "a:1x1")
		o.Key = Key{"ns", "batch", "Job", "train"}
		o.Object = objectOf(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\n"+
			"spec: {parallelism: 4, completions: 6, "+
			"template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}\n"+status)
		return o
	}
	jobs := func(status string) *Observed {
		o := inTurn(t, "a:2x1", "b:3x2")
		for key, value := range objectOf(t, "status: {replicatedJobsStatus: ["+status+"]}") {
			o.Object[key] = value
		}
		return o
	}
	for name, c := range map[string]struct {
		o    *Observed
		want int // ranks
	}{
		"a new Job":        {job(""), 4},
		"some of it":       {job("status: {succeeded: 2}"), 4},
		"more of it":       {job("status: {succeeded: 5}"), 1},
		"a new JobSet":     {jobs(""), 8},
		"one of its Jobs":  {jobs("{name: b, succeeded: 1}"), 6},
		"all of one":       {jobs("{name: a, succeeded: 2}, {name: b, succeeded: 1}"), 4},
		"more than it has": {jobs("{name: a, succeeded: 7}"), 6},
	} {
		c.o.Pods = []*corev1.Pod{podOf("p", 8)}
		all, d := ShapeOf(c.o).Ranks, DeriveNew(c.o)
		if d.Spec == nil || d.Spec.Resources.TotalGPUs != int32(8*c.want) || all != 4 && all != 8 {
			t.Errorf("%s: it begins with %+v, want %d ranks, and has %d when it has begun", name, d, c.want, all)
		}
	}
}
