package book

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// gpuNode draws a node of a type, or one without GPUs.
func gpuNode(t *rapid.T) *corev1.Node {
	draw := func(what string) string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, what) }
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node")),
		Labels: map[string]string{"region": "r", "cluster": "c", "fabric.domain": draw("domain"), "pool": draw("pool")}}}
	if of := rapid.SampledFrom([]string{"A", "B", ""}).Draw(t, "type"); of != "" {
		node.Labels["gpu.flavor"] = of
		node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	}
	if rapid.Bool().Draw(t, "tainted") {
		node.Spec.Taints = []corev1.Taint{{Key: "k", Value: draw("taint"), Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}

// TestWhichNodesKindsMayUseFollowsTheNodes: what is kept of them is what is found out anew, however nodes come, change
// and go.
func TestWhichNodesKindsMayUseFollowsTheNodes(t *testing.T) {
	type found struct {
		Nodes   []string
		Domains map[string][]string
		Barred  map[string]bool
	}
	ask := func(b *Book, flavor string, pod *corev1.Pod) (out found) {
		is := b.nodes.usableTo(flavor, pod, nodesFor(pod))
		out = found{append([]string{}, is.nodes...), map[string][]string{}, map[string]bool{}}
		for domain, nodes := range is.domains {
			out.Domains[domain] = nodes
		}
		for name := range b.nodes.ofFlavor[flavor] {
			out.Barred[name] = is.barred != nil && is.barred(name)
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		args, err := config.Parse(nil)
		if err != nil {
			t.Fatal(err)
		}
		b := New(args)
		pods := []*corev1.Pod{{}, {}, {}}
		pods[1].Spec.NodeSelector = map[string]string{"pool": "x"}
		pods[2].Spec.Tolerations = []corev1.Toleration{{Key: "k", Value: "x"}}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			if node := gpuNode(t); rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
				b.RemoveNode(node.Name)
			} else {
				b.SetNode(node)
			}
			for _, flavor := range []string{"A", "B"} {
				for _, pod := range pods {
					kept := ask(b, flavor, pod)
					was := b.nodes.usable
					b.nodes.usable = map[says]*keptNodes{}
					anew := ask(b, flavor, pod)
					b.nodes.usable = was
					if diff := cmp.Diff(anew, kept); diff != "" {
						t.Fatalf("of type %s (-want +got):\n%s", flavor, diff)
					}
				}
			}
		}
	})
}

// TestOfKindsThatNobodyAsksAboutNothingIsKept however many nodes come and go, nor of ever more kinds.
func TestOfKindsThatNobodyAsksAboutNothingIsKept(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := New(args)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"gpu.flavor": "A"}}}
	for i := range 3 * mostKindsKept {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"pool": fmt.Sprint(i)}}}
		b.nodes.usableTo("A", pod, nodesFor(pod))
		if len(b.nodes.usable) > mostKindsKept+1 {
			t.Fatalf("it is kept for %d kinds", len(b.nodes.usable))
		}
	}
	for i := range 100 {
		node.Name = fmt.Sprint("n", i)
		b.SetNode(node.DeepCopy())
		b.RemoveNode(node.Name)
	}
	if len(b.nodes.usable) > 0 {
		t.Errorf("it is kept for %d kinds", len(b.nodes.usable))
	}
}

// TestWhichNodesKindsMayUseIsKept while nodes of other types change, and those that stay as they are for pods.
func TestWhichNodesKindsMayUseIsKept(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, pod := New(args), &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"pool": "x"}}}
	node := func(name, flavor, pool, note string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "r", "cluster": "c",
			"fabric.domain": "d", "gpu.flavor": flavor, "pool": pool, "note": note}}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}
	}
	b.SetNode(node("n0", "A", "x", ""))
	b.SetNode(node("n1", "A", "y", ""))
	is := b.nodes.usableTo("A", pod, nodesFor(pod))
	for _, other := range []*corev1.Node{node("n2", "B", "x", ""), {ObjectMeta: metav1.ObjectMeta{Name: "cpu"}},
		node("n0", "A", "x", "changed"), node("n1", "A", "y", "changed")} {
		b.SetNode(other)
		if b.nodes.usableTo("A", pod, nodesFor(pod)) != is {
			t.Errorf("it is found out again since %s has changed", other.Name)
		}
	}
}
