package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestAPodGetsOneRank: who offers a pod may not have seen yet that it has its rank, and another pod's is not seen by
// anybody. It keeps its own.
func TestAPodGetsOneRank(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Group", Name: "g"}
	})
	for _, name := range []string{"a", "b", "c", "d"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		o.Offers = append(o.Offers, book.Offer{Pod: pod, Rank: -1})
	}
	ranks := func() map[string]string {
		out := map[string]string{}
		for _, a := range Decide(o).Adopt {
			out[a.Pod.Name] = a.Labels[rqv1.LabelIndex]
		}
		return out
	}
	want := map[string]string{"a": "0", "b": "1", "c": "2", "d": "3"}
	first := Decide(o).Adopt
	if diff := cmp.Diff(want, ranks()); diff != "" {
		t.Fatalf("ranks (-want +got):\n%s", diff)
	}
	seen := first[1].Pod.DeepCopy()
	seen.Labels = first[1].Labels
	o.Pods = append(o.Pods, seen)
	delete(want, "b")
	if diff := cmp.Diff(want, ranks()); diff != "" {
		t.Errorf("once one has been seen with its rank (-want +got):\n%s", diff)
	}
}
