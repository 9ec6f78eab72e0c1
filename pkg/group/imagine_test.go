package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// imagined are objects as people write them; %s is where the pods' spec goes.
const (
	asks     = "{schedulerName: jobtree, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}"
	asksNone = "{schedulerName: jobtree, containers: [{name: c}]}"
	owned    = "annotations: {rq.davidlangworthy.io/owner: \"org:team\"}"
)

func jobOf(name, more, labels, spec string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {namespace: ns, name: " + name + ", " + owned + "}, spec: {" +
		more +
		"template: {metadata: {labels: {" + labels + "}}, spec: " + spec + "}}}"
}

func podIn(name, more string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {namespace: ns, name: " + name + ", " + more + "}, spec: " + asks + "}"
}

// TestImagine: what groups there would be, and what Runs would stand for them, if objects were made.
func TestImagine(t *testing.T) {
	const gang = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {namespace: ns, name: gang}, " +
		"spec: {minMember: 3}}"
	lws := func(templates string) string {
		return "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {namespace: ns, name: serve, " +
			owned + "}, spec: {replicas: 2, leaderWorkerTemplate: {size: 4, " + templates + "}}}"
	}
	jobSet := func(more, above string) string {
		return "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {namespace: ns, name: llm, annotations: " +
			"{" + above +
			"rq.davidlangworthy.io/owner: \"org:team\"}}, spec: {replicatedJobs: [" +
			"{name: driver, template: {metadata: {annotations: {rq.davidlangworthy.io/checkpoint: 5m}}, spec: {template: " +
			"{spec: " + asksNone + "}}}}, " +
			"{name: w, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: " + asks + "}}}}" +
			more + "]}}"
	}
	kueue := "labels: {kueue.x-k8s.io/pod-group-name: g}, annotations: {rq.davidlangworthy.io/owner: \"org:team\", " +
		"kueue.x-k8s.io/pod-group-total-count: \"2\"}"
	for name, c := range map[string]struct {
		objects []string
		want    []string // a group and its Run in brief, or what is wrong
	}{
		"an indexed Job": {[]string{jobOf("train", "completionMode: Indexed, parallelism: 4, completions: 2, ", "", asks)},
			[]string{"Job/train: 16 of H100 by 8"}},
		"a Job": {[]string{jobOf("train", "parallelism: 2, ", "", asks)},
			[]string{"Pod/train-0: 8 of H100 by 8", "Pod/train-1: 8 of H100 by 8"}},
		"a JobSet": {[]string{jobSet("", "")}, []string{"JobSet/llm: 32 of H100 by 8, in groups of 16, checkpoint 5m0s"}},
		"a JobSet with a part that comes after": {[]string{jobSet(", {name: after, dependsOn: [{name: w, status: "+
			"Complete}], "+
			"template: {spec: {template: {spec: "+strings.Replace(asks, "8", "4", 1)+"}}}}", "")},
			[]string{"JobSet/llm: 32 of H100 by 8, in groups of 16, checkpoint 5m0s"}},
		"a JobSet that is prepared by what asks for none": {[]string{strings.Replace(jobSet("", ""), "{name: w, ",
			"{name: w, dependsOn: [{name: driver, status: Complete}], ", 1)},
			[]string{"JobSet/llm: 32 of H100 by 8, in groups of 16, checkpoint 5m0s"}},
		"a JobSet that is led": {[]string{jobSet("", exclusiveTopology+": rack, ")},
			[]string{"JobSet/llm: 32 of H100 by 8, in groups of 16, checkpoint 5m0s, 2 first"}},
		"leaders and workers": {[]string{lws("leaderTemplate: {spec: " + asksNone + "}, workerTemplate: {spec: " + asks +
			"}")},
			[]string{"LeaderWorkerSet/serve-0: 24 of H100 by 8, 0 first", "LeaderWorkerSet/serve-1: 24 of H100 by 8, 0 first"}},
		"workers": {[]string{lws("workerTemplate: {spec: " + asks + "}")},
			[]string{"LeaderWorkerSet/serve-0: 32 of H100 by 8, 0 first", "LeaderWorkerSet/serve-1: 32 of H100 by 8, 0 first"}},
		"a leader that asks for fewer than workers": {[]string{lws("leaderTemplate: {spec: " +
			strings.Replace(asks, "8", "1", 1) + "}, workerTemplate: {spec: " + asks + "}")},
			[]string{"LeaderWorkerSet/serve-0: pod", "LeaderWorkerSet/serve-1: pod"}},
		"a leader alone": {[]string{lws("leaderTemplate: {spec: " + asks + "}, workerTemplate: {spec: " + asksNone + "}")},
			[]string{"LeaderWorkerSet/serve-0: 8 of H100 by 8, 0 first", "LeaderWorkerSet/serve-1: 8 of H100 by 8, 0 first"}},
		"a pod": {[]string{podIn("p", owned)}, []string{"Pod/p: 8 of H100 by 8"}},
		"pods of a group": {[]string{podIn("a", kueue), podIn("b", kueue)},
			[]string{"PodGroup/g: 16 of H100 by 8"}},
		"a group that is not whole": {[]string{podIn("a", kueue)},
			[]string{"PodGroup/g: waiting for 1 more of the group's 2 pods to be created"}},
		"a PodGroup and a Job": {[]string{jobOf("mpi", "parallelism: 3, ", "scheduling.x-k8s.io/pod-group: gang", asks),
			gang},
			[]string{"PodGroup/gang: 24 of H100 by 8"}},
		"without the PodGroup": {[]string{jobOf("mpi", "parallelism: 3, ", "scheduling.x-k8s.io/pod-group: gang", asks)},
			[]string{"pod mpi-0 belongs to PodGroup/gang, which says how many pods there are and is not in the given files: " +
				"add it"}},
		"another scheduler": {[]string{jobOf("train", "", "", "{containers: [{name: c}]}")},
			[]string{"Job/train: its pods are for another scheduler: add schedulerName: jobtree to spec.template.spec"}},
		"nobody pays": {[]string{strings.Replace(jobOf("train", "", "", asks), "/owner", "/ownr", 1)},
			[]string{"Pod/train: no owner is named to pay for the 8 GPUs of Pod/train: add annotation"}},
		"a kind that nobody knows": {[]string{"{apiVersion: example.com/v1, kind: Farm, metadata: {namespace: ns, name: " +
			"farm, " +
			owned + "}, spec: {head: {template: {spec: " + asksNone +
			"}}, groups: [{groupName: w, replicas: 2, " +
			"template: {metadata: {annotations: {rq.davidlangworthy.io/group: farm, " +
			"rq.davidlangworthy.io/group-size: \"2\"}}, spec: " +
			asks + "}}]}}"}, []string{"Group/farm: 16 of H100 by 8", "Pod/farm: "}},
		"a kind that is not read": {[]string{strings.NewReplacer("apiVersion: batch/v1", "apiVersion: example.com/v1",
			"kind: Job", "kind: Farm").Replace(jobOf("farm", "", "", asks))}, []string{
			"Pod/farm: no owner is named to pay for the 8 GPUs of Pod/farm: add annotation rq.davidlangworthy.io/owner to " +
				"Pod/farm, to its pods, or to namespace ns; what Farm/farm says does not count, since the scheduler may not " +
				"read it"}},
		"a CronJob, which is read": {[]string{"{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: ns, name: " +
			"evals, " + owned + "}, spec: {jobTemplate: {spec: {template: {spec: " + asks + "}}}}}"},
			[]string{"Pod/evals: 8 of H100 by 8"}},
		"no pods": {[]string{"{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"}, nil},
		"too many pods": {[]string{jobOf("train", "parallelism: 1000000, ", "", asks)},
			[]string{"Job/train: it has more than 20000"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []map[string]any
			for _, text := range c.objects {
				objects = append(objects, objectOf(t, text))
			}
			rules := testRules
			if strings.Contains(name, "read") { // only kinds that are known are
				rules.Reads = ReadsKnown
			}
			groups, err := Imagine(rules, objects)
			var got []string
			if err != nil {
				got = append(got, err.Error())
			}
			for _, o := range groups {
				o.Types = []string{"H100"}
				d := Derive(o)
				text := fmt.Sprintf("%s: %s%s%s", o.Key, d.Problem, d.Waits, brief(d.Spec))
				if d.Spec != nil && d.Spec.Pods.Late {
					text += fmt.Sprintf(", %d first", d.Spec.Pods.First)
				}
				got = append(got, text)
			}
			for i := range min(len(got), len(c.want)) {
				got[i] = got[i][:min(len(got[i]), max(len(c.want[i]), strings.Index(got[i], ": add")))]
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestImaginedPods are marked as their controllers mark them.
func TestImaginedPods(t *testing.T) {
	groups, err := Imagine(testRules, []map[string]any{objectOf(t, strings.Replace(twoByTwo, "kind: JobSet",
		"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet", 1))})
	if err == nil || len(groups) != 0 {
		t.Fatalf("its pods are for another scheduler: %v", err)
	}
	text := strings.ReplaceAll(strings.Replace(twoByTwo, "kind: JobSet", "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: "+
		"JobSet",
		1), "containers:", "schedulerName: jobtree, containers:")
	groups, err = Imagine(testRules, []map[string]any{objectOf(t, text)})
	if err != nil || len(groups) != 1 {
		t.Fatal(err)
	}
	shape, ranks := ShapeOf(groups[0]), map[string]int{}
	for _, pod := range groups[0].Pods {
		ranks[pod.Name] = shape.Rank(pod)
	}
	want := map[string]int{"llm-driver-0": -1, "llm-w-0-0": 0, "llm-w-0-1": 1, "llm-w-1-0": 2, "llm-w-1-1": 3}
	if diff := cmp.Diff(want, ranks); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
}
