package book

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestMachinesWithoutGPUs: nodes without GPUs are no part of the fleet, whatever their labels: they offer no type of
// GPU, and nobody is told that they are left out, but for a node of a type that others have, whose devices are not
// there. Its type stays one that people may mean.
func TestMachinesWithoutGPUs(t *testing.T) {
	for _, label := range []string{"gpu.flavor", "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator",
		corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, "eks.amazonaws.com/nodegroup", "example.com/pool"} {
		args, err := config.Parse([]byte("flavorLabel: " + label))
		if err != nil {
			t.Fatal(err)
		}
		b := New(args)
		machine := func(name, kind string, gpus, ready int64) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "west",
				"cluster": "one", "fabric.domain": "a"}}, Status: corev1.NodeStatus{
				Capacity:    corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
				Allocatable: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(ready, resource.DecimalSI)}}}
			if kind != "" {
				node.Labels[label] = kind
			}
			b.SetNode(node)
		}
		machine("large", "p5.48xlarge", 8, 8)
		machine("down", "p5.48xlarge", 0, 0)
		machine("plain", "", 0, 0)
		machine("arm", "", 0, 0)
		want, types := []string{"down"}, []string{"p5.48xlarge"}
		if !strings.Contains(label, "gpu") && !strings.Contains(label, "accelerator") {
			machine("m6i", "m6i.8xlarge", 0, 0)
		} else {
			machine("broken", "B200", 0, 0) // whoever gives it such a label means GPUs
			want, types = []string{"broken", "down"}, []string{"B200", "p5.48xlarge"}
		}
		if diff := cmp.Diff(types, b.Flavors()); diff != "" {
			t.Errorf("%s: types of GPU (-want +got):\n%s", label, diff)
		}
		var got []string
		for _, out := range b.LeftOutNodes() {
			got = append(got, out.Node)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: left out (-want +got):\n%s", label, diff)
		}
		machine("large", "p5.48xlarge", 8, 0)
		if diff := cmp.Diff(types, b.Flavors()); diff != "" {
			t.Errorf("%s: types of GPU while no device plugin answers (-want +got):\n%s", label, diff)
		}
	}
}
