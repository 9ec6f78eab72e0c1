package group

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

var testRules = Rules{GPUs: func(s *corev1.PodSpec) int { return rank.PodGPUs(s, "nvidia.com/gpu") },
	FlavorOf: func(v string) string { return v }, FlavorLabel: "gpu.flavor", FabricLevel: "fabric.domain"}

// podOf is a pod that asks for GPUs, with labels and annotations: those whose keys end in "!" are annotations.
func podOf(name string, gpus int64, words ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{},
		Annotations: map[string]string{}}, Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName,
		Containers: []corev1.Container{{}}}}
	if gpus > 0 {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	for i := 0; i < len(words); i += 2 {
		if key, annotation := strings.CutSuffix(words[i], "!"); annotation {
			pod.Annotations[key] = words[i+1]
		} else {
			pod.Labels[words[i]] = words[i+1]
		}
	}
	return pod
}

func objectOf(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return integers(out).(map[string]any)
}

// integers has whole numbers be as the API machinery reads them.
func integers(of any) any {
	switch v := of.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return of
}

func TestOf(t *testing.T) {
	native := podOf("p", 8)
	native.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want Member
	}{
		"native": {native, Member{Key: Key{"ns", "scheduling.k8s.io", "PodGroup", "gang"}, Index: -1}},
		"coscheduling": {podOf("p", 8, "scheduling.x-k8s.io/pod-group", "gang"),
			Member{Key: Key{"ns", "scheduling.x-k8s.io", "PodGroup", "gang"}, Index: -1}},
		"LeaderWorkerSet": {podOf("p", 8, "leaderworkerset.sigs.k8s.io/name", "llm",
			"leaderworkerset.sigs.k8s.io/group-index", "3", "leaderworkerset.sigs.k8s.io/worker-index", "2",
			"leaderworkerset.sigs.k8s.io/size!", "4"),
			Member{Key: Key{"ns", "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "llm-3"}, Size: 4, Index: 2, Late: true}},
		"JobSet": {podOf("p", 8, "jobset.sigs.k8s.io/jobset-name", "llm", "jobset.sigs.k8s.io/replicatedjob-name", "w",
			"jobset.sigs.k8s.io/job-index", "1", labelCompletion, "0", "batch.kubernetes.io/job-name", "llm-w-1",
			"alpha.jobset.sigs.k8s.io/exclusive-topology!", "rack"),
			Member{Key: Key{"ns", "jobset.x-k8s.io", "JobSet", "llm"}, Part: Part{"w", 1}, Late: true}},
		"indexed Job": {podOf("p", 8, "batch.kubernetes.io/job-name", "train", labelCompletion, "5"),
			Member{Key: Key{"ns", "batch", "Job", "train"}, Index: 5}},
		"another Job": {podOf("p", 8, "batch.kubernetes.io/job-name", "train"),
			Member{Key: Key{Namespace: "ns", Kind: "Pod", Name: "p"}, Size: 1}},
		"RayCluster": {podOf("p", 8, "ray.io/cluster", "tune", "ray.io/node-type", "worker", "ray.io/group", "gpus",
			"ray.io/worker-group-replica-index", "2", "ray.io/replica-host-index", "1"),
			Member{Key: Key{"ns", "ray.io", "RayCluster", "tune"}, Part: Part{"gpus", 2}, Index: 1}},
		"a head of Ray": {podOf("p", 0, "ray.io/cluster", "tune", "ray.io/node-type", "head", "ray.io/group", "headgroup"),
			Member{Key: Key{"ns", "ray.io", "RayCluster", "tune"}, Part: Part{Name: "headgroup"}, Index: -1}},
		"MPIJob": {podOf("p", 8, "training.kubeflow.org/job-name", "hpl", "training.kubeflow.org/operator-name",
			"mpi-operator", "training.kubeflow.org/job-role", "worker", "training.kubeflow.org/replica-index", "1"),
			Member{Key: Key{"ns", "kubeflow.org", "MPIJob", "hpl"}, Part: Part{Name: "worker"}, Index: 1}},
		"a launcher, of a Job": {podOf("p", 0, "training.kubeflow.org/job-name", "hpl", "training.kubeflow.org/operator-name",
			"mpi-operator", "training.kubeflow.org/job-role", "launcher", "batch.kubernetes.io/job-name", "hpl-launcher"),
			Member{Key: Key{"ns", "kubeflow.org", "MPIJob", "hpl"}, Part: Part{Name: "launcher"}, Index: -1}},
		"PyTorchJob": {podOf("p", 8, "training.kubeflow.org/job-name", "bert", "training.kubeflow.org/operator-name",
			"pytorchjob-controller", "training.kubeflow.org/replica-type", "master", "training.kubeflow.org/replica-index", "0"),
			Member{Key: Key{"ns", "kubeflow.org", "PyTorchJob", "bert"}, Part: Part{Name: "master"}}},
		"an operator that nobody knows": {podOf("p", 8, "training.kubeflow.org/job-name", "bert",
			"training.kubeflow.org/operator-name", "farm-operator"),
			Member{Key: Key{Namespace: "ns", Kind: "Pod", Name: "p"}, Size: 1}},
		"Kueue": {podOf("p", 8, "kueue.x-k8s.io/pod-group-name", "gang", "kueue.x-k8s.io/pod-group-total-count!", "3"),
			Member{Key: Key{"ns", "", "PodGroup", "gang"}, Size: 3, Index: -1}},
		"ours": {podOf("p", 8, rqv1.AnnotationGroup+"!", "gang", rqv1.AnnotationGroupSize+"!", "3"),
			Member{Key: Key{"ns", "", "Group", "gang"}, Size: 3, Index: -1}},
		"a size that is none": {podOf("p", 8, rqv1.AnnotationGroup+"!", "gang", rqv1.AnnotationGroupSize+"!", "-3"),
			Member{Key: Key{"ns", "", "Group", "gang"}, Size: badSize, Index: -1}},
		"itself": {podOf("p", 8), Member{Key: Key{"ns", "", "Pod", "p"}, Size: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Of(c.pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoIsACandidate: whose a pod is the scheduler's labels say. Another API may have a kind Run as well, and anybody
// may name ours.
func TestWhoIsACandidate(t *testing.T) {
	controls := true
	for _, kind := range []string{"", "Job", "Run"} {
		pod := podOf("p", 8)
		if kind != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: kind, Name: "x", UID: "x",
				Controller: &controls}}
		}
		for _, labels := range []map[string]string{nil, {rqv1.LabelRun: "r", rqv1.LabelSource: string(rqv1.SourcePods)}} {
			if pod.Labels = labels; !Candidate(pod) {
				t.Errorf("a pod of kind %q with labels %v is none", kind, labels)
			}
		}
		if pod.Labels = map[string]string{rqv1.LabelRun: "r"}; Candidate(pod) {
			t.Error("a pod that a Run has made is taken for somebody else's")
		}
	}
}

const twoByTwo = `
kind: JobSet
metadata: {name: llm}
spec:
  replicatedJobs:
  - name: driver
    template: {spec: {parallelism: 1, template: {spec: {containers: [{name: c}]}}}}
  - name: w
    replicas: 2
    template: {spec: {parallelism: 2, completions: 2, template: {spec: {
      containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}
`

// ofJobSet is a pod of one of its Jobs.
func ofJobSet(name string, gpus int64, part, job, index string) *corev1.Pod {
	return podOf(name, gpus, "jobset.sigs.k8s.io/jobset-name", "llm", "jobset.sigs.k8s.io/replicatedjob-name", part,
		"jobset.sigs.k8s.io/job-index", job, labelCompletion, index)
}

func TestDerive(t *testing.T) {
	own := []string{rqv1.AnnotationOwner + "!", "org:team"}
	with := func(words ...string) []string { return append(words, own...) }
	group := func(size string) []string {
		return with(rqv1.AnnotationGroup+"!", "gang", rqv1.AnnotationGroupSize+"!", size)
	}
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		object string
		types  []string
		want   string // the spec in brief, or what is wrong or waited for
	}{
		"a pod":             {pods: []*corev1.Pod{podOf("p", 8, own...)}, want: "8 of H100 by 8"},
		"a pod without any": {pods: []*corev1.Pod{podOf("p", 0, own...)}, want: ""},
		"a head that says less": {pods: []*corev1.Pod{podOf("head", 0, group("2")...),
			selecting(podOf("w", 8, group("2")...))}, types: []string{"B200", "H100"}, want: "8 of H100 by 8"},
		"a type by affinity": {pods: []*corev1.Pod{attracted(podOf("p", 8, own...), "H100")},
			types: []string{"B200", "H100"}, want: "8 of H100 by 8"},
		"two types by affinity": {pods: []*corev1.Pod{attracted(podOf("p", 8, own...), "B200", "H100")},
			types: []string{"B200", "H100"}, want: "no type of GPU is named, and the fleet has B200, H100"},
		"a pod of a group of Koordinator's": {
			pods: []*corev1.Pod{podOf("p", 8, "gang.scheduling.koordinator.sh/name!", "mpi")},
			want: "Pod/p is in group mpi by annotation gang.scheduling.koordinator.sh/name of Koordinator, which jobtree does"},
		"a pod of a group of Volcano's": {pods: []*corev1.Pod{podOf("p", 8, "volcano.sh/job-name", "mpi")},
			want: "Pod/p is in group mpi by label volcano.sh/job-name of Volcano, which jobtree does not read: name the group"},
		"one that names it by our words too": {pods: []*corev1.Pod{podOf("p", 8, append(group("1"),
			"volcano.sh/job-name", "mpi")...)}, want: "8 of H100 by 8"},
		"nobody's pod": {pods: []*corev1.Pod{podOf("p", 8)}, want: "no owner is named to pay for the 8 GPUs of Pod/p"},
		"two types": {pods: []*corev1.Pod{podOf("p", 8, own...)}, types: []string{"B200", "H100"},
			want: "no type of GPU is named, and the fleet has B200, H100"},
		"a group that is not whole": {pods: []*corev1.Pod{podOf("a", 8, group("2")...)},
			want: "waiting for 1 more of the group's 2 pods to be created"},
		"a group with a head": {pods: []*corev1.Pod{podOf("a", 8, group("3")...), podOf("b", 8, group("3")...),
			podOf("head", 0, group("3")...)}, want: "16 of H100 by 8"},
		"more than its size": {pods: []*corev1.Pod{podOf("a", 8, group("2")...), podOf("b", 8, group("2")...),
			podOf("c", 8, group("2")...)}, want: "24 of H100 by 8"},
		"sizes that differ": {pods: []*corev1.Pod{podOf("a", 8, group("2")...), podOf("b", 4, group("2")...)},
			want: "pod b of Group/gang asks for 4 GPUs and pod a for 8"},
		"least and spares": {pods: []*corev1.Pod{podOf("a", 4, append(group("2"), rqv1.AnnotationMinWidth+"!", "4",
			rqv1.AnnotationSpares+"!", "4", rqv1.AnnotationCheckpoint+"!", "10m")...), podOf("b", 4,
			append(group("2"), rqv1.AnnotationMinWidth+"!", "4", rqv1.AnnotationSpares+"!", "4",
				rqv1.AnnotationCheckpoint+"!", "10m")...)}, want: "8 of H100 by 4, from 4 to 8, spares 4, checkpoint 10m0s"},
		"spares that are no whole pods": {pods: []*corev1.Pod{podOf("a", 8, with(rqv1.AnnotationSpares+"!", "4")...)},
			want: "8 of H100 by 8, spares 4"},
		"a JobSet by its object": {pods: []*corev1.Pod{ofJobSet("a", 8, "w", "0", "0")}, object: twoByTwo,
			want: "no owner is named"},
		"a PodGroup of which there are more": {pods: []*corev1.Pod{
			podOf("a", 8, with("scheduling.x-k8s.io/pod-group", "gang")...),
			podOf("b", 8, with("scheduling.x-k8s.io/pod-group", "gang")...),
			podOf("c", 8, with("scheduling.x-k8s.io/pod-group", "gang")...)},
			object: "{kind: PodGroup, spec: {minMember: 2}}", want: "24 of H100 by 8, from 16 to 24"},
		"a PodGroup in a domain": {pods: []*corev1.Pod{podOf("a", 8, with("scheduling.x-k8s.io/pod-group", "gang")...)},
			object: "{kind: PodGroup, spec: {minMember: 1, schedulingConstraints: {topology: [{key: fabric.domain}]}}}",
			want:   "8 of H100 by 8, in one domain"},
		"a PodGroup in a domain, in groups": {pods: []*corev1.Pod{
			podOf("a", 4, with("scheduling.x-k8s.io/pod-group", "gang", rqv1.AnnotationGroupGPUs+"!", "4")...),
			podOf("b", 4, with("scheduling.x-k8s.io/pod-group", "gang", rqv1.AnnotationGroupGPUs+"!", "4")...)},
			object: "{kind: PodGroup, spec: {minMember: 2, schedulingConstraints: {topology: [{key: fabric.domain}]}}}",
			want:   "8 of H100 by 4, in groups of 4, in one domain"},
		"a PodGroup in another": {pods: []*corev1.Pod{podOf("a", 8, with("scheduling.x-k8s.io/pod-group", "gang")...)},
			object: "{kind: PodGroup, spec: {minMember: 1, schedulingConstraints: {topology: [{key: rack}]}}}",
			want:   "PodGroup/gang asks for one domain of rack"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Rules: testRules, Key: Of(c.pods[0]).Key, Pods: c.pods, Types: c.types}
			if c.object != "" {
				o.Object = objectOf(t, c.object)
			}
			if o.Types == nil {
				o.Types = []string{"H100"}
			}
			d := Derive(o)
			got := d.Problem + d.Waits + brief(d.Spec)
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// selecting has a pod be for nodes of a type.
func selecting(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{"gpu.flavor": "H100"}
	return pod
}

// attracted has a pod require nodes of types by affinity, in a term for each.
func attracted(pod *corev1.Pod, types ...string) *corev1.Pod {
	required := &corev1.NodeSelector{}
	for _, of := range types {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "zone", Operator: corev1.NodeSelectorOpExists},
				{Key: "gpu.flavor", Operator: corev1.NodeSelectorOpIn, Values: []string{of}}}})
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: required}}
	return pod
}

// brief is a spec in a few words.
func brief(s *rqv1.RunSpec) string {
	if s == nil {
		return ""
	}
	out := fmt.Sprintf("%d of %s by %d", s.Resources.TotalGPUs, s.Resources.GPUType, *s.Resources.GPUsPerPod)
	if l := s.Locality; l != nil && l.GroupGPUs != nil {
		out += fmt.Sprintf(", in groups of %d", *l.GroupGPUs)
	}
	if l := s.Locality; l != nil && l.AllowCrossGroupSpread != nil && !*l.AllowCrossGroupSpread {
		out += ", in one domain"
	}
	if m := s.Malleable; m != nil {
		out += fmt.Sprintf(", from %d to %d", m.MinTotalGPUs, m.MaxTotalGPUs)
	}
	if s.SparesPerGroup != nil {
		out += fmt.Sprintf(", spares %d", *s.SparesPerGroup)
	}
	if s.Runtime != nil && s.Runtime.Checkpoint != nil {
		out += ", checkpoint " + s.Runtime.Checkpoint.Duration.String()
	}
	return out
}

// Who pays is said nearest first, and a JobSet's Jobs are groups with ranks by their own indexes.
func TestJobSet(t *testing.T) {
	pods := []*corev1.Pod{ofJobSet("d", 0, "driver", "0", "0"), ofJobSet("a", 8, "w", "0", "0"),
		ofJobSet("b", 8, "w", "1", "1")}
	o := &Observed{Rules: testRules, Key: Of(pods[0]).Key, Pods: pods, Types: []string{"H100"},
		Object: objectOf(t, twoByTwo), Above: []Said{{"JobSet/llm", map[string]string{rqv1.AnnotationOwner: "org:near"}}},
		Namespace: map[string]string{rqv1.AnnotationOwner: "org:far", rqv1.AnnotationMaxDuration: "2h"}}
	d := Derive(o)
	if d.Spec == nil {
		t.Fatalf("no Run: %s%s", d.Problem, d.Waits)
	}
	if got := brief(d.Spec); got != "32 of H100 by 8, in groups of 16" || d.Spec.Owner != "org:near" ||
		d.Spec.Runtime.MaxDuration.Duration != 2*time.Hour {
		t.Errorf("got %s for %s, %+v", got, d.Spec.Owner, d.Spec.Runtime)
	}
	shape := ShapeOf(o)
	ranks := map[string]int{}
	for _, pod := range pods {
		ranks[pod.Name] = shape.Rank(pod)
	}
	if diff := cmp.Diff(map[string]int{"d": -1, "a": 0, "b": 3}, ranks); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
}

// The name of a Run fits, is a name, and differs between groups that differ in anything.
func TestRunName(t *testing.T) {
	seen := map[string]Key{}
	for _, k := range []Key{{"a", "batch", "Job", "train"}, {"b", "batch", "Job", "train"}, {"a", "", "Job", "train"},
		{"a", "batch", "Job", "train.x"}, {"a", "batch", "Job", "train-x"},
		{"a", "batch", "Job", strings.Repeat("x.", 100)}, {"a", "", "Group", "My_Group"}, {"a", "", "Group", "my-group"},
		{"a", "", "Group", strings.Repeat("é ", 30)}} {
		name := RunName(k)
		if other, taken := seen[name]; taken || len(name) > longestName || len(validation.IsDNS1123Label(name)) > 0 {
			t.Errorf("%v is %q, as %v", k, name, other)
		}
		seen[name] = k
	}
}
