package book_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
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
		"another resource":  {asking(map[corev1.ResourceName]string{"nvidia.com/gpu": "4"}, nil), ""},
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
