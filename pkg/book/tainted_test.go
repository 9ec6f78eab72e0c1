package book

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestTaintsOfOtherNodesCostNothing: while no node of its flavor that serves keeps a gang off, the packer is told of no
// node to leave out, and so need not look at single ones. Only such a node does, for as long as it has its taint.
func TestTaintsOfOtherNodesCostNothing(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := New(args)
	set := func(name, flavor string, gpus int64, cordoned, tainted bool) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"region": "r", "cluster": "c", "fabric.domain": "d", "gpu.flavor": flavor}}}
		if gpus > 0 {
			node.Status.Allocatable = corev1.ResourceList{
				"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
		} else {
			node.Labels = nil
		}
		if node.Spec.Unschedulable = cordoned; tainted {
			node.Spec.Taints = []corev1.Taint{{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
		}
		b.SetNode(node)
	}
	pod := &corev1.Pod{}
	for _, step := range []struct {
		does   string
		do     func()
		barred string
	}{
		{"one node serves", func() { set("n0", "a", 8, false, false) }, ""},
		{"the control plane is tainted", func() { set("control", "", 0, false, true) }, ""},
		{"a node of another flavor is tainted", func() { set("other", "b", 8, false, true) }, ""},
		{"a cordoned node is tainted", func() { set("cordoned", "a", 8, true, true) }, ""},
		{"a node that serves is tainted", func() { set("n1", "a", 8, false, true) }, "n1"},
		{"it gets another flavor", func() { set("n1", "b", 8, false, true) }, ""},
		{"it is back", func() { set("n1", "a", 8, false, true) }, "n1"},
		{"it loses its taint", func() { set("n1", "a", 8, false, false) }, ""},
	} {
		step.do()
		barred := b.nodes.barred("a", pod)
		if step.barred == "" && barred != nil {
			t.Errorf("%s: the packer has to ask of every node", step.does)
		}
		if step.barred != "" && (barred == nil || !barred(step.barred) || barred("n0")) {
			t.Errorf("%s: not just that is left out", step.does)
		}
	}
}
