package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// What a node refuses one pod for, such as a rule of another's there that names its label, is not held against another
// pod of the group that has another label.
func TestArrangedByWhatEachPodIs(t *testing.T) {
	check := &book.Check{Spots: map[string]book.Spot{
		"a0": {Pods: 1, Labels: map[string]string{"zone": "a"}}, "b0": {Pods: 1, Labels: map[string]string{"zone": "b"}}}}
	for _, tier := range []string{"web", "store"} {
		pod := evenly("zone")
		pod.Labels = map[string]string{"tier": tier}
		check.Places = append(check.Places, book.Place{Pod: pod, Node: "a0"})
	}
	got := check.Arrange(book.Evenly, false, func(p book.Place) book.Verdict {
		if p.Node == "a0" && p.Pod.Labels["tier"] == "web" {
			return book.Refused
		}
		return book.Accepted
	})
	if diff := cmp.Diff([]string{"b0", "a0"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// Nor is what a node refuses a pod for that asks for more than another one beside its containers.
func TestArrangedByWhatEachPodAsksFor(t *testing.T) {
	check := &book.Check{Spots: map[string]book.Spot{
		"a0": {Pods: 1, Labels: map[string]string{"zone": "a"}}, "b0": {Pods: 1, Labels: map[string]string{"zone": "b"}}}}
	for _, ports := range [][]corev1.ContainerPort{{{HostPort: 80}}, nil} {
		pod := evenly("zone")
		pod.Spec.InitContainers = []corev1.Container{{Name: "first", Ports: ports}}
		check.Places = append(check.Places, book.Place{Pod: pod, Node: "a0"})
	}
	got := check.Arrange(book.Evenly, false, func(p book.Place) book.Verdict {
		if p.Node == "a0" && len(p.Pod.Spec.InitContainers[0].Ports) > 0 {
			return book.Refused
		}
		return book.Accepted
	})
	if diff := cmp.Diff([]string{"b0", "a0"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
