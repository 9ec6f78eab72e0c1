// Package coscheduling holds what is known of the coscheduling plugin's PodGroups to its release.
package coscheduling

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// TestKind: the pods that carry the release's label are in its PodGroup of that name, which the scheduler may read.
func TestKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds, _, err := scheme.ObjectKinds(&v1alpha1.PodGroup{})
	if err != nil || len(kinds) != 1 {
		t.Fatalf("the release's PodGroup is of kinds %v: %v", kinds, err)
	}
	want := group.Key{Namespace: "ns", API: kinds[0].Group, Kind: kinds[0].Kind, Name: "gang"}
	if diff := cmp.Diff(want, group.Of(member("a")).Key); diff != "" {
		t.Errorf("a pod with the release's label is in (-want +got):\n%s", diff)
	}
	if !group.ReadsKnown(want) || !group.Counts(want) {
		t.Errorf("%s may be read: %t; says how many pods there are: %t", want, group.ReadsKnown(want), group.Counts(want))
	}
}

// TestSpec: how many pods a gang needs is read from what the release's types say, whatever else they say.
func TestSpec(t *testing.T) {
	timeout := int32(30)
	for name, c := range map[string]struct {
		least int32
		pods  []string
		waits string
		gpus  int32
		from  int32 // the least that it starts with, where that is less
	}{
		"too few": {least: 3, pods: []string{"a", "b"},
			waits: "waiting for 1 more of the group's 3 pods to be created"},
		"all":             {least: 2, pods: []string{"a", "b"}, gpus: 16},
		"more":            {least: 1, pods: []string{"a", "b"}, gpus: 16, from: 8},
		"nothing is said": {pods: []string{"a", "b"}, gpus: 16, from: 8},
	} {
		t.Run(name, func(t *testing.T) {
			gang := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gang"},
				Spec: v1alpha1.PodGroupSpec{MinMember: c.least, ScheduleTimeoutSeconds: &timeout,
					MinResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
				Status: v1alpha1.PodGroupStatus{Phase: v1alpha1.PodGroupScheduling, Running: 1, OccupiedBy: "ns/somebody",
					ScheduleStartTime: metav1.Unix(1, 0)}}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(gang)
			if err != nil {
				t.Fatal(err)
			}
			o := &group.Observed{Rules: rules, Object: object, Types: []string{"H100"}}
			for _, pod := range c.pods {
				o.Pods = append(o.Pods, member(pod))
			}
			o.Key = group.Of(o.Pods[0]).Key
			d := group.Derive(o)
			got := []any{d.Problem, d.Waits, int32(0), int32(0)}
			if d.Spec != nil {
				got[2] = d.Spec.Resources.TotalGPUs
				if m := d.Spec.Malleable; m != nil {
					got[3] = m.MinTotalGPUs
				}
			}
			if diff := cmp.Diff([]any{"", c.waits, c.gpus, c.from}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDefinition: what the tests install is the CustomResourceDefinition of the release.
func TestDefinition(t *testing.T) {
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/scheduler-plugins").Output()
	if err != nil {
		t.Fatal(err)
	}
	read := func(path ...string) string {
		raw, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	released := read(strings.TrimSpace(string(module)), "config", "crd", "bases", "scheduling.x-k8s.io_podgroups.yaml")
	if diff := cmp.Diff(released, read("..", "..", "test", "controlplane", "podgroups.yaml")); diff != "" {
		t.Errorf("test/controlplane/podgroups.yaml is not the release's (-release +ours):\n%s", diff)
	}
}

var rules = group.Rules{
	GPUs: func(s *corev1.PodSpec) int {
		gpus := s.Containers[0].Resources.Limits["nvidia.com/gpu"]
		return int(gpus.Value())
	},
	FlavorOf: func(v string) string { return v }, FlavorLabel: "gpu.flavor", FabricLevel: "fabric.domain",
}

// member is a pod of 8 GPUs in a gang.
func member(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		Labels:      map[string]string{v1alpha1.PodGroupLabel: "gang"},
		Annotations: map[string]string{rqv1.AnnotationOwner: "org:team"}},
		Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}}}}
}
