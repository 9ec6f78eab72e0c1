package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// FuzzTemplate: whatever a template says, the pods that are made of it are the Run's: its name and labels, controlled
// by it alone, for our scheduler, on no node yet, with the GPUs that the Run is charged for. The template is not
// changed.
func FuzzTemplate(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		template := &corev1.PodTemplateSpec{}
		if json.Unmarshal([]byte(text), template) != nil {
			return
		}
		o := scene(func(o *Observed) { o.Run.Spec.Template = template })
		o.Demand.SparesPerGroup = 1
		stated := asks(&template.Spec, o.GPUResource)
		d := Decide(o)
		if after, _ := json.Marshal(o.Run.Spec.Template); string(after) != marshalled(t, text) {
			t.Errorf("the template\n%s\nhas become\n%s", text, after)
		}
		if len(d.Create) != 6 {
			t.Fatalf("%d pods are made, not 4 ranks and 2 spares", len(d.Create))
		}
		seen := map[string]bool{}
		for _, pod := range d.Create {
			run, part, ok := rank.Membership(pod)
			if !ok || run != o.Run.UID || pod.Namespace != o.Run.Namespace || len(pod.OwnerReferences) != 1 || seen[pod.Name] {
				t.Errorf("pod %s/%s of %v with labels %v is not a pod of the Run", pod.Namespace, pod.Name, pod.OwnerReferences,
					pod.Labels)
			}
			seen[pod.Name] = true
			checkOurs(t, pod)
			if gpus := rank.PodGPUs(&pod.Spec, o.GPUResource); part.Spare && gpus != 0 || !part.Spare && !stated &&
				gpus != o.Demand.GPUsPerPod {
				t.Errorf("pod %s asks for %d GPUs", pod.Name, gpus)
			}
		}
	})
}

// checkOurs checks what only the scheduler decides of a pod.
func checkOurs(t *testing.T, pod *corev1.Pod) {
	if pod.Spec.SchedulerName != rqv1.SchedulerName || pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 ||
		len(pod.Finalizers) > 0 ||
		pod.GenerateName != "" || len(pod.Spec.Containers) == 0 {
		t.Errorf("pod %s: scheduler %q, node %q, gates %v, %d containers", pod.Name, pod.Spec.SchedulerName,
			pod.Spec.NodeName,
			pod.Spec.SchedulingGates, len(pod.Spec.Containers))
	}
	for key, value := range pod.Annotations {
		if strings.HasPrefix(key, rqv1.GroupName+"/") {
			t.Errorf("pod %s carries annotation %s: %s", pod.Name, key, value)
		}
	}
	for key := range pod.Labels {
		switch key {
		case rqv1.LabelRun, rqv1.LabelIndex, rqv1.LabelGroupIndex, rqv1.LabelCohort, rqv1.LabelRole, rqv1.LabelEpoch,
			rqv1.LabelRunUID:
		default:
			if strings.HasPrefix(key, rqv1.GroupName+"/") {
				t.Errorf("pod %s carries label %s", pod.Name, key)
			}
		}
	}
}

// asks tells whether a container asks for GPUs, or for less than none, which admission refuses: then the pods ask for
// as much.
func asks(spec *corev1.PodSpec, gpu string) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			limit, request := containers[i].Resources.Limits[corev1.ResourceName(gpu)],
				containers[i].Resources.Requests[corev1.ResourceName(gpu)]
			if !limit.IsZero() || !request.IsZero() {
				return true
			}
		}
	}
	return false
}

// marshalled is a template as it was read and is written again.
func marshalled(t *testing.T, text string) string {
	template := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(text), template); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
