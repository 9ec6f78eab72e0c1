package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ofGang is a pod of native PodGroup gang.
func ofGang(name string, gpus int64, words ...string) *corev1.Pod {
	pod := podOf(name, gpus, append(words, rqv1.AnnotationOwner+"!", "org:team")...)
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	return pod
}

// TestPodGroups: what Run stands for native PodGroups, and what is wrong with those that are.
func TestPodGroups(t *testing.T) {
	some := func(pods int) (out []*corev1.Pod) {
		for i := range pods {
			out = append(out, ofGang(fmt.Sprintf("p%d", i), 8))
		}
		return out
	}
	const gangOf2 = "schedulingPolicy: {gang: {minCount: 2}}"
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		spec string
		want string
	}{
		"as many as it needs": {some(2), gangOf2, "16 of H100 by 8"},
		"more":                {some(3), gangOf2, "24 of H100 by 8, from 16 to 24"},
		"too few":             {some(1), gangOf2, "waiting for 1 more of the group's 2 pods to be created"},
		"in a domain": {some(2), gangOf2 + ", schedulingConstraints: {topology: [{key: fabric.domain}]}",
			"16 of H100 by 8, in one domain"},
		"more, in a domain": {some(3), gangOf2 + ", schedulingConstraints: {topology: [{key: fabric.domain}]}",
			"24 of H100 by 8, in one domain, from 16 to 24"},
		"in a rack": {some(2), gangOf2 + ", schedulingConstraints: {topology: [{key: rack}]}",
			"PodGroup/gang asks for one domain of rack"},
		"no gang": {some(3), "schedulingPolicy: {basic: {}}", "24 of H100 by 8, from 8 to 24"},
		"no gang, in a domain": {some(3),
			"schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: fabric.domain}]}",
			"24 of H100 by 8, in one domain, from 8 to 24"},
		"10,000 pods": {some(10000), "schedulingPolicy: {gang: {minCount: 10000}}", "80000 of H100 by 8"},
		"10,000 pods of which few are there": {some(3), "schedulingPolicy: {gang: {minCount: 10000}}",
			"waiting for 9997 more of the group's 10000 pods to be created"},
		"more than any fleet has": {some(3), "schedulingPolicy: {gang: {minCount: 2147483647}}",
			"PodGroup/gang asks for 17179869176 GPUs, and a Run may have 1000000 at most"},
		"least is said while pods are missing": {[]*corev1.Pod{ofGang("a", 8, rqv1.AnnotationMinWidth+"!", "8")}, gangOf2,
			"waiting for 1 more of the group's 2 pods to be created"},
		"another owner": {append(some(1), podOfOwner("q", "org:other")), gangOf2,
			"annotation rq.davidlangworthy.io/owner of Pod/q is \"org:other\", and Pod/p0 of the same group says \"org:team\""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Rules: testRules, Key: Of(c.pods[0]).Key, Pods: c.pods, Types: []string{"H100"},
				Object: objectOf(t, "{kind: PodGroup, spec: {"+c.spec+"}}")}
			d := Derive(o)
			if got := d.Problem + d.Waits + brief(d.Spec); !strings.HasPrefix(got, c.want) ||
				d.Spec != nil && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func podOfOwner(name, owner string) *corev1.Pod {
	pod := ofGang(name, 8)
	pod.Annotations[rqv1.AnnotationOwner] = owner
	return pod
}

// TestOneNameOfDifferentKinds: groups are not taken for each other that have one name, and neither are those of two
// namespaces.
func TestOneNameOfDifferentKinds(t *testing.T) {
	other := ofGang("p", 8)
	other.Namespace = "other"
	runs := map[string]bool{}
	pods := []*corev1.Pod{ofGang("p", 8), other, podOf("p", 8, "scheduling.x-k8s.io/pod-group", "gang"),
		podOf("p", 8, "kueue.x-k8s.io/pod-group-name", "gang"), podOf("p", 8, rqv1.AnnotationGroup+"!", "gang"),
		podOf("p", 8, "jobset.sigs.k8s.io/jobset-name", "gang"), podOf("gang", 8)}
	for _, pod := range pods {
		runs[pod.Namespace+"/"+RunName(Of(pod).Key)] = true
	}
	if len(runs) != len(pods) {
		t.Errorf("%d groups have these Runs: %v", len(pods), runs)
	}
}

// TestDropped: a pod whose PodGroup the API server has dropped is told so, and starts in no other way.
func TestDropped(t *testing.T) {
	pod := podOf("p", 8, rqv1.AnnotationOwner+"!", "org:team")
	pod.Spec.SchedulerName = rqv1.SchedulerName
	derive := func() Derived {
		return Derive(&Observed{Rules: testRules, Key: Of(pod).Key, Pods: []*corev1.Pod{pod}, Types: []string{"H100"}})
	}
	wrote := func(fields string) {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}})
	}
	wrote(`{"f:spec":{"f:nodeName":{}}}`)
	if Trim(pod); pod.ManagedFields != nil || derive().Spec == nil {
		t.Errorf("a pod that named no group gets %+v, with %v kept", derive(), pod.ManagedFields)
	}
	wrote(`{"f:spec":{"f:schedulingGroup":{".":{},"f:podGroupName":{}}}}`)
	for range 2 {
		if d := derive(); d.Spec != nil || !strings.Contains(d.Problem, "--feature-gates=GenericWorkload=true") {
			t.Errorf("a pod whose group is dropped gets %+v", d)
		}
		Trim(pod)
	}
	if len(pod.ManagedFields) != 1 {
		t.Errorf("%v are kept", pod.ManagedFields)
	}
	pod.Annotations[rqv1.AnnotationGroup], pod.Annotations[rqv1.AnnotationGroupSize] = "mine", "1"
	if d := derive(); d.Spec == nil {
		t.Errorf("one that is in a group all the same gets %+v", d)
	}
}

// TestScheduled: the condition of a PodGroup says why the group waits, then that it has started, and no more from then
// on.
func TestScheduled(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	run := func(phase rqv1.RunPhase, message string) *rqv1.Run {
		r := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
		r.Status.Phase, r.Status.Message = phase, message
		return r
	}
	waits := run(rqv1.RunPending, "short by 8")
	const (
		told    = "metadata: {generation: 2}, status: {conditions: [{type: PodGroupInitiallyScheduled, "
		short   = told + "status: 'False', reason: Unschedulable, message: short by 8"
		started = told + "status: 'True', reason: Scheduled, message: Run r has started}]}"
	)
	for name, c := range map[string]struct {
		object string
		run    *rqv1.Run
		why    string
		want   string // status, reason and message; empty for nothing new
	}{
		"nothing is known":   {"metadata: {}", run(rqv1.RunPending, ""), "", ""},
		"there is no Run":    {"metadata: {}", nil, "nobody pays", "False Unschedulable nobody pays"},
		"it waits":           {"metadata: {}", waits, "", "False Unschedulable short by 8"},
		"it said so":         {short + ", observedGeneration: 2}]}", waits, "", ""},
		"it said another":    {short + "0}]}", waits, "", "False Unschedulable short by 8"},
		"it starts":          {short + "}]}", run(rqv1.RunRunning, "bound"), "", "True Scheduled Run r has started"},
		"it is cut":          {started, waits, "", ""},
		"its pods are wrong": {started, nil, "nobody pays", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, is := range Scheduled(objectOf(t, "{"+c.object+"}"), c.run, c.why, at) {
				got = fmt.Sprintf("%s %s %s", is.Status, is.Reason, is.Message)
				if !is.LastTransitionTime.Time.Equal(at) && strings.Contains(c.object, "'False'") == (is.Status == "True") {
					t.Errorf("it changed at %s", is.LastTransitionTime)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for k, want := range map[Key]bool{Of(ofGang("p", 8)).Key: true, {API: "scheduling.x-k8s.io", Kind: "PodGroup"}: false,
		{Kind: "PodGroup"}: false} {
		if Reports(k) != want {
			t.Errorf("a group of %q reports: %v", k.API, !want)
		}
	}
}

// TestMisfits: a pod that names a group which has a Run gets no rank in it unless it is as the others are.
func TestMisfits(t *testing.T) {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: rqv1.RunSpec{Owner: "org:team",
		Resources: rqv1.RunResources{TotalGPUs: 16, GPUsPerPod: ptr.To[int32](8)}}}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		gpus int
		want string
	}{
		"as the others":           {ofGang("p", 8), 8, ""},
		"one that names no owner": {podOf("p", 8), 8, ""},
		"another size":            {ofGang("p", 4), 4, "pod p asks for 4 GPUs, and each pod of PodGroup/gang"},
		"another owner":           {podOfOwner("p", "org:other"), 8, "and org:team pays for PodGroup/gang"},
	} {
		if got := Misfit(run, c.pod, c.gpus); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestFull: who comes when all pods of a group are there is told so; where one is about to go it waits for that place.
func TestFull(t *testing.T) {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: rqv1.RunSpec{
		Resources: rqv1.RunResources{TotalGPUs: 16, GPUsPerPod: ptr.To[int32](8)}}}
	members := []*corev1.Pod{ofGang("a", 8), ofGang("b", 8)}
	full := func() bool { return Full(run, members) != "" }
	if full() {
		t.Error("one that has not started is full")
	}
	run.Status.Phase = rqv1.RunRunning
	if !full() {
		t.Error("one that has all pods is not full")
	}
	run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: ptr.To[int32](16)}
	if why := Full(run, members); !strings.HasSuffix(why, "or starts with others that make up another group of 16 GPUs") {
		t.Errorf("one that grows by groups says %q", why)
	}
	run.Spec.Locality = nil
	run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 24, StepGPUs: 8}
	if full() {
		t.Error("one that may grow is full")
	}
	run.Spec.Malleable = nil
	members[0].Status.Phase = corev1.PodFailed
	if full() {
		t.Error("one of whose pods one has failed is full")
	}
	members[0] = ofGang("a", 8)
	members[0].DeletionTimestamp = &metav1.Time{}
	if full() || Full(run, members[1:]) != "" {
		t.Error("one that lacks a pod is full")
	}
}
