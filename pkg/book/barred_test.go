package book_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhoMayNotUseANodeIsToldWhy: GPUs that are free on nodes which the pods may not use are told with one of these
// nodes and what keeps the pods from it. Pieces smaller than a pod are nothing that anybody is kept from.
func TestWhoMayNotUseANodeIsToldWhy(t *testing.T) {
	pool := func(r *rqv1.RunSpec) {
		r.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"gpu.flavor": flavor,
			"disk": "fast"}, Containers: []corev1.Container{{Name: "main", Image: "image"}}}}
	}
	for name, c := range map[string]struct {
		held    int // on n1
		changes []func(*rqv1.RunSpec)
		want    string
	}{
		"taint": {6, nil, "8 H100-80GB GPUs are needed, and 0 fit now: short by 8; 8 more GPUs are free on nodes that " +
			"these pods may not use, such as n0: untolerated taint nvidia.com/gpu:NoSchedule"},
		"selector": {6, []func(*rqv1.RunSpec){pool}, "such as n0: untolerated taint nvidia.com/gpu:NoSchedule"},
		"both": {0, []func(*rqv1.RunSpec){pool},
			"16 more GPUs are free on nodes that these pods may not use, such as n0: "},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.taint("n0")
				w.addNode("n1", "d0")
				w.setBudget("a", "org:a", 64)
				if c.held > 0 {
					w.submitWithSpares("first", "org:a", 1, 1, c.held, 0)
					w.settle()
				}
				w.submitWithSpares("waits", "org:a", 1, 1, 8, 0, c.changes...)
				w.settle()
				if is := w.Book.Refusal(w.Runs["waits"].UID); is == nil || !strings.Contains(is.Message, c.want) {
					w.t.Fatalf("it is told %v, which lacks %q", is, c.want)
				}
			})
		})
	}
}
