package story

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// NodeChange says something of a node, when it is made or later.
type NodeChange func(*corev1.Node)

// gpuResource is the resource that GPUs are.
const gpuResource = "nvidia.com/gpu"

// Cordoned has somebody keep new pods from a node.
func Cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// GivenBack is what a person does to a node that is well again.
func GivenBack(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = false, nil }

// Tainted puts a taint on a node.
func Tainted(key, value string, effect corev1.TaintEffect) NodeChange {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

// Shows has a node say something of itself by a condition.
func Shows(condition corev1.NodeConditionType, status corev1.ConditionStatus) NodeChange {
	return func(n *corev1.Node) {
		n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == condition
		})
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: condition, Status: status,
			Reason: "Told", Message: "as the story goes"})
	}
}

// Without takes a label off a node.
func Without(label string) NodeChange { return func(n *corev1.Node) { delete(n.Labels, label) } }

// Labelled puts a label on a node.
func Labelled(key, value string) NodeChange { return func(n *corev1.Node) { n.Labels[key] = value } }

// Annotated puts an annotation on a node.
func Annotated(key, value string) NodeChange {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// WithGPUs has a node have so many GPUs, other than 8.
func WithGPUs(count int64) NodeChange {
	return func(n *corev1.Node) {
		for _, of := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
			of[gpuResource] = *resource.NewQuantity(count, resource.DecimalSI)
			if count == 0 {
				delete(of, gpuResource)
			}
		}
	}
}

// node is a node of 8 GPUs in a domain.
func (s *Site) node(name, domain string) *corev1.Node {
	resources := func() corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
			corev1.ResourcePods: resource.MustParse("110"), gpuResource: resource.MustParse("8"),
		}
	}
	full := s.Namespace + "-" + name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        full,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"region": "west", "cluster": "one", "fabric.domain": s.Namespace + "-" + domain, "gpu.flavor": s.Flavor,
				corev1.LabelHostname: full,
			},
		},
		Status: corev1.NodeStatus{Capacity: resources(), Allocatable: resources()},
	}
}

// Recorded is an error unless a node is recorded as lost, for a reason that holds a text, and cordoned.
func Recorded(n *corev1.Node, text string) error {
	record := n.Annotations[rqv1.AnnotationLost]
	if !n.Spec.Unschedulable || record == "" || !strings.Contains(record, text) {
		return fmt.Errorf("it is cordoned: %v, and its record is %q", n.Spec.Unschedulable, record)
	}
	return nil
}

// Unrecorded is an error unless nothing tells any more that a node was lost.
func Unrecorded(n *corev1.Node) error {
	_, recorded := n.Annotations[rqv1.AnnotationLost]
	_, cordoned := n.Annotations[rqv1.AnnotationCordoned]
	if recorded || cordoned || n.Spec.Unschedulable {
		return fmt.Errorf("it is cordoned: %v, its annotations are %v", n.Spec.Unschedulable, n.Annotations)
	}
	return nil
}
