package group

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestFirst: how many pods of a JobSet there are before any of them is bound.
func TestFirst(t *testing.T) {
	exclusive := "metadata: {name: llm, annotations: {" + exclusiveTopology + ": fabric.domain"
	second := "\n  - name: x\n    dependsOn: [{name: w, status: Ready}]\n    replicas: 1\n" +
		"    template: {spec: {parallelism: 2, template: {spec: {containers: [{name: c, resources: {limits: " +
		"{nvidia.com/gpu: 8}}}]}}}}\n"
	for name, c := range map[string]struct {
		object       string
		first, ranks int
	}{
		"all at once": {twoByTwo, 4, 4},
		"led":         {strings.Replace(twoByTwo, "metadata: {name: llm", exclusive+"}", 1), 2, 4},
		"nodes are labelled": {strings.Replace(twoByTwo, "metadata: {name: llm", exclusive+", "+domainsSaid+": \"true\"}", 1),
			4, 4},
		"one part is led": {strings.Replace(twoByTwo, "template: {spec: {parallelism: 2, completions",
			"template: {metadata: {annotations: {"+exclusiveTopology+": fabric.domain}}, spec: {parallelism: 2, completions", 1),
			2, 4},
		"after another": {strings.TrimRight(twoByTwo, "\n") + second, 4, 6},
		"one after another": {strings.TrimRight(twoByTwo, "\n") + strings.Replace(second, "dependsOn", "ignored", 1) +
			"  startupPolicy: {startupPolicyOrder: InOrder}\n", 4, 6},
	} {
		t.Run(name, func(t *testing.T) {
			pod := ofJobSet("a", 8, "w", "0", "0")
			s := ShapeOf(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: nil, Object: objectOf(t, c.object)})
			if s.First != c.first || s.Ranks != c.ranks {
				t.Errorf("%d of %d ranks come first, want %d of %d", s.First, s.Ranks, c.first, c.ranks)
			}
		})
	}
}

// TestAnotherDomainThanGroupsHave: a JobSet each of whose Jobs is to have a domain of its own is told where that is not
// what groups of GPUs stay within.
func TestAnotherDomainThanGroupsHave(t *testing.T) {
	for key, want := range map[string]string{"fabric.domain": "", "cloud.google.com/gke-nodepool": "JobSet/llm asks for " +
		"a domain of cloud.google.com/gke-nodepool for each of its Jobs, and jobtree keeps a group of GPUs within one of " +
		"fabric.domain: set fabricLevel to cloud.google.com/gke-nodepool if its domains are others"} {
		pod := ofJobSet("a", 8, "w", "0", "0")
		object := strings.Replace(twoByTwo, "name: llm", "name: llm, annotations: {"+exclusiveTopology+": "+key+"}", 1)
		d := Derive(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: []*corev1.Pod{pod}, Types: []string{"H100"},
			Object: objectOf(t, object)})
		if d.Note != want || (d.Exclusive == key) != (want != "") {
			t.Errorf("%s: %q of %q, want %q", key, d.Note, d.Exclusive, want)
		}
	}
}

// TestGroupOfASingleJob: a JobSet of one Job is a group of GPUs if the Job is to have a domain for itself.
func TestGroupOfASingleJob(t *testing.T) {
	single := strings.Replace(twoByTwo, "replicas: 2", "replicas: 1", 1)
	apart := "name: llm, annotations: {" + exclusiveTopology + ": rack}"
	for name, c := range map[string]struct {
		object string
		jobs   []string
		group  int32
	}{
		"of two":               {twoByTwo, []string{"0", "1"}, 16},
		"of one":               {single, []string{"0"}, 0},
		"of one that is apart": {strings.Replace(single, "name: llm", apart, 1), []string{"0"}, 16},
	} {
		var pods []*corev1.Pod
		for _, job := range c.jobs {
			pods = append(pods, ofJobSet(job+"a", 8, "w", job, "0"), ofJobSet(job+"b", 8, "w", job, "1"))
		}
		for _, pod := range pods {
			pod.Annotations[rqv1.AnnotationOwner] = "org:team"
		}
		d := Derive(&Observed{Rules: testRules, Key: Of(pods[0]).Key, Pods: pods, Types: []string{"H100"},
			Object: objectOf(t, c.object)})
		group := int32(0)
		if d.Spec == nil {
			t.Fatalf("%s: %s%s", name, d.Problem, d.Waits)
		}
		if l := d.Spec.Locality; l != nil && l.GroupGPUs != nil {
			group = *l.GroupGPUs
		}
		if group != c.group {
			t.Errorf("%s: groups of %d GPUs, want %d", name, group, c.group)
		}
	}
}
