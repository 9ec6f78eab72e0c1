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

// inDomains is a JobSet of two Jobs of two pods each, in the order of their names, with what each asks for.
func inDomains(a, w string) string {
	text := "kind: JobSet\nmetadata: {name: llm}\nspec:\n  replicatedJobs:\n"
	for _, job := range [][2]string{{"a", a}, {"w", w}} {
		metadata := ""
		if job[1] != "" {
			metadata = "metadata: {annotations: {" + exclusiveTopology + ": " + job[1] + "}}, "
		}
		text += "  - name: " + job[0] + "\n    template: {" + metadata + "spec: {parallelism: 2, completions: 2, template: " +
			"{spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}\n"
	}
	return text
}

// TestOtherDomainsThanGroupsHave: a JobSet whose Jobs, or some of them, are to have domains of their own is told where
// those are not what groups of GPUs stay within.
func TestOtherDomainsThanGroupsHave(t *testing.T) {
	const pool = "cloud.google.com/gke-nodepool"
	another := "JobSet/llm asks for exclusive domains of " + pool + ", and jobtree keeps a group of GPUs within one " +
		"of fabric.domain: set fabricLevel to " + pool + " if its domains are others"
	several := func(keys string) string {
		return "JobSet/llm asks for exclusive domains of several labels (" + keys + "), and jobtree keeps a group of " +
			"GPUs within one of fabric.domain: name that one for all of them"
	}
	of := func(key string) string {
		return strings.Replace(twoByTwo, "name: llm", "name: llm, annotations: {"+exclusiveTopology+": "+key+"}", 1)
	}
	for name, c := range map[string]struct{ object, note, exclusive string }{
		"what groups stay within": {of("fabric.domain"), "", ""},
		"another":                 {of(pool), another, pool},
		"another for one Job":     {inDomains("", pool), another, pool},
		"another for the other":   {inDomains(pool, ""), another, pool},
		"the same for one Job":    {inDomains("", "fabric.domain"), "", ""},
		"different ones":          {inDomains(pool, "rack"), several(pool + ", rack"), pool + ",rack"},
		"different ones, one is it": {inDomains("fabric.domain", pool), several("fabric.domain, " + pool),
			"fabric.domain," + pool},
		"none": {inDomains("", ""), "", ""},
	} {
		pod := ofJobSet("a", 8, "w", "0", "0")
		d := Derive(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: []*corev1.Pod{pod}, Types: []string{"H100"},
			Object: objectOf(t, c.object)})
		if d.Note != c.note || d.Exclusive != c.exclusive {
			t.Errorf("%s: %q of %q, want %q of %q", name, d.Note, d.Exclusive, c.note, c.exclusive)
		}
	}
}

// TestOneJobIsLed: of a JobSet of whose Jobs one alone is to have a domain for itself, that one's other pods come once
// its first is bound, whichever of them is the first by name.
func TestOneJobIsLed(t *testing.T) {
	for name, c := range map[string]struct {
		object, led string
	}{"the first": {inDomains("rack", ""), "a"}, "the last": {inDomains("", "rack"), "w"}} {
		var pods []*corev1.Pod
		for _, job := range []string{"a", "w"} {
			for _, index := range []string{"0", "1"} {
				pod := ofJobSet(job+index, 8, job, "0", index)
				pod.Annotations[rqv1.AnnotationOwner] = "org:team"
				if job == c.led {
					pod.Annotations[exclusiveTopology] = "rack"
				}
				if job != c.led || index == "0" {
					pods = append(pods, pod)
				}
			}
		}
		d := Derive(&Observed{Rules: testRules, Key: Of(pods[0]).Key, Pods: pods, Types: []string{"H100"},
			Object: objectOf(t, c.object)})
		if d.Spec == nil {
			t.Fatalf("%s: %s%s", name, d.Problem, d.Waits)
		}
		if of := d.Spec.Pods; !of.Late || of.First != 3 || d.Spec.Resources.TotalGPUs != 32 {
			t.Errorf("%s: %d GPUs, and others make pods as %+v", name, d.Spec.Resources.TotalGPUs, of)
		}
	}
}

// TestAGroupOfALeaderWorkerSetApart lies in one domain if it is to have one for itself, where that is what groups stay
// within, and is told where it is not.
func TestAGroupOfALeaderWorkerSetApart(t *testing.T) {
	for key, c := range map[string]struct {
		together    bool
		note, apart string
	}{
		"":              {},
		"fabric.domain": {together: true},
		"rack": {note: "LeaderWorkerSet/llm-0 asks for exclusive domains of rack, and jobtree keeps a group of GPUs within " +
			"one of fabric.domain: set fabricLevel to rack if its domains are others", apart: "rack"},
	} {
		pod := podOf("llm-0", 8, "leaderworkerset.sigs.k8s.io/name", "llm", "leaderworkerset.sigs.k8s.io/group-index", "0",
			"leaderworkerset.sigs.k8s.io/worker-index", "0", "leaderworkerset.sigs.k8s.io/size!", "2",
			rqv1.AnnotationOwner+"!", "org:team", exclusiveGroup+"!", key)
		d := Derive(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: []*corev1.Pod{pod}, Types: []string{"H100"}})
		if d.Spec == nil {
			t.Fatalf("%q: %s%s", key, d.Problem, d.Waits)
		}
		l := d.Spec.Locality
		if is := l != nil && l.AllowCrossGroupSpread != nil && !*l.AllowCrossGroupSpread; is != c.together ||
			d.Note != c.note || d.Exclusive != c.apart {
			t.Errorf("%q: together: %v, %q of %q", key, is, d.Note, d.Exclusive)
		}
	}
}

// TestJobsThatDifferInPods: where pods come once the first of their Job is bound, all Jobs have as many; a group of
// GPUs is such a Job, whatever else is said.
func TestJobsThatDifferInPods(t *testing.T) {
	uneven := func(a, w string) string {
		return strings.Replace(inDomains(a, w), "{parallelism: 2", "{parallelism: 1", 1)
	}
	apart := func(job, size, other, has string) string {
		return "JobSet/llm asks for a domain of its own for Job " + job + ", of " + size + " pods with GPUs, and Job " +
			other + " has " + has + ": give all of its Jobs as many, or leave annotation " + exclusiveTopology + " out"
	}
	for name, c := range map[string]struct{ object, group, problem string }{
		"the larger one is led":  {uneven("", "rack"), "", apart("w", "2", "a", "1")},
		"both are":               {uneven("rack", "rack"), "", apart("w", "2", "a", "1")},
		"one that has no others": {uneven("rack", ""), "", ""},
		"none":                   {uneven("", ""), "", ""},
		"as many":                {inDomains("rack", ""), "", ""},
		"a group is a Job":       {inDomains("rack", ""), "16", ""},
		"a group is two": {inDomains("rack", ""), "32", `annotation rq.davidlangworthy.io/group-gpus of Pod/a is "32", ` +
			"and the Jobs of JobSet/llm, which ask for domains of their own, have 16 GPUs each"},
	} {
		pod := ofJobSet("a", 8, "a", "0", "0")
		pod.Annotations[rqv1.AnnotationOwner] = "org:team"
		if c.group != "" {
			pod.Annotations[rqv1.AnnotationGroupGPUs] = c.group
		}
		d := Derive(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: []*corev1.Pod{pod}, Types: []string{"H100"},
			Object: objectOf(t, c.object)})
		if d.Problem != c.problem {
			t.Errorf("%s: %q, want %q", name, d.Problem, c.problem)
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

// TestALeaderThatAsksForAnotherNumberOfGPUs than its workers, which come later, waits before it has begun, and is told.
// One whose workers ask for none is all of its group.
func TestALeaderThatAsksForAnotherNumberOfGPUs(t *testing.T) {
	object := func(workers string) string {
		return "{spec: {leaderWorkerTemplate: {size: 3, workerTemplate: {spec: {containers: [{name: c, resources: " +
			"{limits: {" + workers + "}}}]}}}}}"
	}
	for name, c := range map[string]struct {
		object  string
		gpus    int32 // of its Run
		problem string
	}{
		"the same": {object: object("nvidia.com/gpu: 1"), gpus: 3},
		"more": {object: object("nvidia.com/gpu: 8"), problem: "LeaderWorkerSet/llm-0 asks for 1 GPUs for its leader and " +
			"for 8 for each of its workers: " + asManyEach},
		"none":                {object: object("cpu: 8"), gpus: 1},
		"it may not be read":  {object: "{}", gpus: 3},
		"it has no templates": {object: "{spec: {leaderWorkerTemplate: {size: 3}}}", gpus: 3},
	} {
		pod := podOf("p", 1, "leaderworkerset.sigs.k8s.io/name", "llm", "leaderworkerset.sigs.k8s.io/group-index", "0",
			"leaderworkerset.sigs.k8s.io/worker-index", "0", "leaderworkerset.sigs.k8s.io/size!", "3",
			rqv1.AnnotationOwner+"!", "org:team")
		d := Derive(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: []*corev1.Pod{pod}, Types: []string{"H100"},
			Object: objectOf(t, c.object)})
		gpus := int32(0)
		if d.Spec != nil {
			gpus = d.Spec.Resources.TotalGPUs
		}
		if d.Problem != c.problem || gpus != c.gpus {
			t.Errorf("%s: a Run of %d GPUs, and the problem %q", name, gpus, d.Problem)
		}
	}
}
