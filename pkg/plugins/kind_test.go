package plugins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// together is a rank that wants to be in a domain with the others of its group, as the API server writes it of a
// template whose affinity is by group.
func together(name string, group int) *corev1.Pod {
	pod := rankPod(name, "8", "1", false)
	pod.Labels[rqv1.LabelGroupIndex] = fmt.Sprint(group)
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "fabric.domain",
			LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{rqv1.LabelRun: "run", rqv1.LabelGroupIndex: fmt.Sprint(group)}}}}}}
	return pod
}

// Pods of one gang may use rules that differ by group: each is asked about by its own.
func TestGroupsThatStayTogether(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 4 {
		node := cpuNode(fmt.Sprint("n", i))
		node.Labels["fabric.domain"] = fmt.Sprint("d", i/2)
		nodes = append(nodes, node)
	}
	for name, c := range map[string]struct {
		on   []string
		want []book.Turning
	}{
		"each group in a domain": {on: []string{"n0", "n1", "n2", "n3"}},
		"a group in two domains": {[]string{"n0", "n2", "n3", "n1"}, []book.Turning{
			{Pod: "rank1", Node: "n2", Why: "node(s) didn't match pod affinity rules"},
			{Pod: "rank3", Node: "n1", Why: "node(s) didn't match pod affinity rules"}}},
	} {
		check := &book.Check{}
		for i, node := range c.on {
			check.Places = append(check.Places, book.Place{Pod: together(fmt.Sprint("rank", i), i/2), Node: node})
		}
		snapshot := cache.NewSnapshot(nil, nodes)
		v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
			over: never}
		if !v.verify(t.Context(), check) {
			t.Errorf("%s: it is not sure", name)
		}
		if diff := cmp.Diff(c.want, v.turned); diff != "" {
			t.Errorf("%s: turned down (-want +got):\n%s", name, diff)
		}
	}
}

// Those who leave nodes that are gone keep nobody off the others.
func TestLeavingANodeThatIsGone(t *testing.T) {
	holder := other("holder", "n0", "8", "10")
	snapshot := cache.NewSnapshot([]*corev1.Pod{holder}, []*corev1.Node{cpuNode("n0")})
	v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
		over: never}
	sure := v.verify(t.Context(), &book.Check{Places: []book.Place{{Pod: rankPod("rank", "8", "8", false), Node: "n0"}},
		Leaving: map[string][]types.UID{"n0": {"holder"}, "gone": {"another"}}})
	if !sure || len(v.turned) > 0 {
		t.Errorf("it is sure: %v; turned down: %v", sure, v.turned)
	}
}
