package book

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// podOf returns a pod as a Run's template has it.
func podOf(run *rqv1.Run) *corev1.Pod {
	pod := &corev1.Pod{}
	if run.Spec.Template != nil {
		pod.Spec = run.Spec.Template.Spec
	}
	return pod
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// byAge orders gangs by the age of their Runs, then by namespace and name (R30).
func byAge(x, y *gang) int {
	a, b := x.run, y.run
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name))
}

// replans reports whether an edit of a Run changes who pays for it or for how long, so that what was planned before
// does not hold any more. The API admits that only while the Run is Pending.
func replans(was, is *rqv1.Run) bool {
	return was.Spec.Owner != is.Spec.Owner || !equality.Semantic.DeepEqual(was.Spec.Funding, is.Spec.Funding) ||
		!equality.Semantic.DeepEqual(was.Spec.Runtime, is.Spec.Runtime)
}
