package group

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestNoNumberOverflows: whatever numbers people write in pods and in what makes them, the group is told that it is too
// large: no Run stands for what is left of a number that passed what can be counted.
func TestNoNumberOverflows(t *testing.T) {
	pods := func(gpus int64, words ...string) (out []*corev1.Pod) {
		for i := range 4 {
			out = append(out, podOf(fmt.Sprintf("p%d", i), gpus, append([]string{rqv1.AnnotationOwner + "!", "org:team",
				rqv1.AnnotationGroup + "!", "g", rqv1.AnnotationGroupSize + "!", "4"}, words...)...))
		}
		return out
	}
	jobSet := func(replicas, parallelism string) string {
		job := "{name: %s, replicas: " + replicas + ", template: {spec: {parallelism: " + parallelism + ", completions: " +
			parallelism + ", template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}}}}"
		return "{kind: JobSet, spec: {replicatedJobs: [" + fmt.Sprintf(job, "a") + ", " + fmt.Sprintf(job, "b") + "]}}"
	}
	part := []*corev1.Pod{ofJobSet("p", 8, "a", "0", "0")}
	const noNumber, tooMany = "is not a number of GPUs", "and a Run may have 1000000 at most"
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		object string
		want   string
	}{
		"quantities":           {pods(1<<62 + 2), "{}", "asks for 1048576 GPUs or more, and a node may have 1024 at most"},
		"quantities that wrap": {pods(1 << 62), "{}", "and a node may have 1024 at most"},
		"more than a node":     {pods(2048), "{}", "asks for 2048 GPUs or more"},
		"group-gpus":           {pods(8, rqv1.AnnotationGroupGPUs+"!", "9223372036854775808"), "{}", noNumber},
		"min-width":            {pods(8, rqv1.AnnotationMinWidth+"!", "4294967304"), "{}", noNumber},
		"spares":               {pods(8, rqv1.AnnotationSpares+"!", "18446744073709551624"), "{}", noNumber},
		"a group of none":      {pods(8, rqv1.AnnotationGroupGPUs+"!", "0"), "{}", noNumber},
		"spares in words":      {pods(8, rqv1.AnnotationSpares+"!", "some"), "{}", noNumber},
		"max-duration":         {pods(8, rqv1.AnnotationMaxDuration+"!", "99999999999h"), "{}", "max-duration"},
		"minCount": {[]*corev1.Pod{ofGang("p", 8)},
			"{kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 4611686018427387904}}}}", tooMany},
		"replicas":              {part, jobSet("4611686018427387904", "1"), tooMany},
		"replicas, parallelism": {part, jobSet("4294967296", "2147483647"), tooMany},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Rules: testRules, Key: Of(c.pods[0]).Key, Pods: c.pods, Types: []string{"H100"},
				Object: objectOf(t, c.object)}
			d := Derive(o)
			if d.Spec != nil || !strings.Contains(d.Problem, c.want) {
				t.Errorf("%+v, waits %q, problem %q, which lacks %q", d.Spec, d.Waits, d.Problem, c.want)
			}
		})
	}
}

// TestASizeThatIsNone: a group whose pods say no number of pods, or nothing, waits and is told so. No pod of it starts
// as if it were all of the group.
func TestASizeThatIsNone(t *testing.T) {
	ours := []string{rqv1.AnnotationGroup + "!", "g"}
	kueues := []string{"kueue.x-k8s.io/pod-group-name", "g"}
	for name, c := range map[string]struct {
		by   []string
		key  string
		size []string // of each of two pods; "-" where it says none
		want string   // what is wrong, or the GPUs that the Run asks for
	}{
		"none":           {ours, rqv1.AnnotationGroupSize, []string{"0"}, `size of Pod/p0 is "0", which is not a number`},
		"a word":         {ours, rqv1.AnnotationGroupSize, []string{"abc"}, `is "abc", which is not a number of pods`},
		"less than none": {ours, rqv1.AnnotationGroupSize, []string{"-2"}, `is "-2", which is not a number of pods`},
		"a fraction":     {ours, rqv1.AnnotationGroupSize, []string{"2.0"}, `is "2.0", which is not a number of pods`},
		"too many":       {ours, rqv1.AnnotationGroupSize, []string{"2147483647"}, "pods from 1 to 1000000"},
		"overflows":      {ours, rqv1.AnnotationGroupSize, []string{"99999999999999999999"}, "pods from 1 to 1000000"},
		"empty":          {ours, rqv1.AnnotationGroupSize, []string{""}, `is "", which is not a number of pods`},
		"missing":        {ours, rqv1.AnnotationGroupSize, []string{"-"}, "nothing says how many pods Group/g has: add"},
		"of the second":  {ours, rqv1.AnnotationGroupSize, []string{"2", "two"}, `of Pod/p1 is "two", which is not`},
		"of one alone":   {ours, rqv1.AnnotationGroupSize, []string{"2", "-"}, "16"},
		"with blanks":    {ours, rqv1.AnnotationGroupSize, []string{" 2", "2"}, "16"},
		"Kueue's":        {kueues, kueueSize, []string{"three"}, `of Pod/p0 is "three", which is not a number`},
		"Kueue's, none":  {kueues, kueueSize, []string{"-", "-"}, "add annotation " + kueueSize},
	} {
		var pods []*corev1.Pod
		for i, size := range c.size {
			pod := podOf(fmt.Sprint("p", i), 8, append([]string{rqv1.AnnotationOwner + "!", "org:team"}, c.by...)...)
			if size != "-" {
				pod.Annotations[c.key] = size
			}
			pods = append(pods, pod)
		}
		d := Derive(&Observed{Rules: testRules, Key: Of(pods[0]).Key, Pods: pods, Types: []string{"H100"}})
		got := d.Problem
		if d.Spec != nil {
			got = fmt.Sprint(d.Spec.Resources.TotalGPUs)
		}
		if !strings.Contains(got, c.want) || got == "" {
			t.Errorf("%s: it gets %q, waits %q, want %q", name, got, d.Waits, c.want)
		}
	}
}
