package rank_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// ofGang is a pod of a gang that requests so many CPUs.
func ofGang(name, cpus string) *corev1.Pod {
	asks := corev1.ResourceList{"cpu": resource.MustParse(cpus)}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{rqv1.LabelRole: string(rqv1.RoleActive)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: asks}}}}}
}

// TestAlike: pods for whom other rules may say something else are looked at each by itself; those of one gang that
// differ by their numbers alone are not.
func TestAlike(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing": {func(*corev1.Pod) {}, true},
		"numbers": {func(p *corev1.Pod) {
			p.Labels[rqv1.LabelIndex], p.Labels["batch.kubernetes.io/job-completion-index"] = "7", "7"
		}, true},
		"another CPU request": {func(p *corev1.Pod) { *p = *ofGang("y", "2") }, false},
		"overhead": {func(p *corev1.Pod) {
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, false},
		"a port of the node": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}, false},
		"a label":  {func(p *corev1.Pod) { p.Labels["app"] = "learner" }, false},
		"selector": {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "a"} }, false},
	} {
		x, y := ofGang("x", "1"), ofGang("y", "1")
		c.change(y)
		if got := rank.Alike(x, y); got != c.want {
			t.Errorf("%s: alike: %v", name, got)
		}
	}
}
