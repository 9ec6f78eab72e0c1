package book_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// asking returns a pod whose containers ask for what the maps say: of the second, its init containers.
func asking(containers, inits map[corev1.ResourceName]string) *corev1.Pod {
	list := func(of map[corev1.ResourceName]string) corev1.ResourceRequirements {
		out := corev1.ResourceList{}
		for name, quantity := range of {
			out[name] = resource.MustParse(quantity)
		}
		return corev1.ResourceRequirements{Requests: out, Limits: out}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: list(containers)}}}}
	if inits != nil {
		pod.Spec.InitContainers = []corev1.Container{{Resources: list(inits)}}
	}
	return pod
}

func TestOnlyRunsAreGivenGPUs(t *testing.T) {
	args, err := config.Parse([]byte("{gpuResource: example.com/gpu}"))
	if err != nil {
		t.Fatal(err)
	}
	b := book.New(args)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		gpus string // as the refusal names them; empty where there is none
	}{
		"CPU alone":         {asking(map[corev1.ResourceName]string{"cpu": "4"}, nil), ""},
		"another resource":  {asking(map[corev1.ResourceName]string{"vpc.amazonaws.com/efa": "4"}, nil), ""},
		"GPUs":              {asking(map[corev1.ResourceName]string{"example.com/gpu": "4"}, nil), "4 example.com/gpu"},
		"an init container": {asking(nil, map[corev1.ResourceName]string{"example.com/gpu": "1"}), "1 example.com/gpu"},
	} {
		refusal := b.Foreign(test.pod)
		if (refusal == nil) != (test.gpus == "") {
			t.Errorf("%s: refused with %v", name, refusal)
		} else if refusal != nil && (!strings.Contains(refusal.Message, test.gpus) ||
			!strings.Contains(refusal.Message, rqv1.AnnotationOwner)) {
			t.Errorf("%s: %s", name, refusal.Message)
		}
	}
}

// TestPodsForWhatNobodyCounts: GPUs of another make, parts of them, and what other schedulers hand out by annotations
// are given to no pod unpaid: it waits, and is told what it asks for.
func TestPodsForWhatNobodyCounts(t *testing.T) {
	args, err := config.Parse([]byte("{gpuResource: nvidia.com/gpu}"))
	if err != nil {
		t.Fatal(err)
	}
	b := book.New(args)
	fraction := asking(map[corev1.ResourceName]string{"cpu": "4"}, nil)
	fraction.Annotations = map[string]string{"gpu-fraction": "0.5"}
	for asks, pod := range map[string]*corev1.Pod{
		"1 nvidia.com/mig-1g.10gb":       asking(map[corev1.ResourceName]string{"nvidia.com/mig-1g.10gb": "1"}, nil),
		"2 nvidia.com/gpu.shared":        asking(nil, map[corev1.ResourceName]string{"nvidia.com/gpu.shared": "2"}),
		"8 amd.com/gpu":                  asking(map[corev1.ResourceName]string{"amd.com/gpu": "8"}, nil),
		`annotation gpu-fraction: "0.5"`: fraction,
	} {
		pod.Name = "web"
		refusal := b.Foreign(pod)
		if refusal == nil || refusal.Reason != plan.Unsupported || !strings.Contains(refusal.Message, "pod web asks for ") ||
			!strings.Contains(refusal.Message, asks) ||
			strings.Contains(refusal.Message, "gpuResource") != (pod != fraction) ||
			!strings.Contains(refusal.Message, "nvidia.com/gpu") {
			t.Errorf("%s: %+v", asks, refusal)
		}
	}
	whole := asking(map[corev1.ResourceName]string{"nvidia.com/gpu": "1"}, nil)
	whole.Annotations = fraction.Annotations
	if refusal := b.Foreign(whole); refusal == nil || !strings.Contains(refusal.Message, "nobody pays") {
		t.Errorf("who asks for a whole one as well lacks who pays for it: %+v", refusal)
	}
}
