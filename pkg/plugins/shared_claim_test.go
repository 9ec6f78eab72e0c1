package plugins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// dataset is a claim that is bound to a volume only when its first pod has a node, and what it may be bound to: volumes
// that there are in two zones, or one that a provisioner makes.
func dataset(provisioned bool) []runtime.Object {
	class, waits := "class", storagev1.VolumeBindingWaitForFirstConsumer
	provisioner := "kubernetes.io/no-provisioner"
	if provisioned {
		provisioner = "example.com/shared"
	}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	out := []runtime.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: provisioner,
			VolumeBindingMode: &waits},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources:   corev1.VolumeResourceRequirements{Requests: size}}},
	}
	for _, zone := range []string{"z0", "z1"} {
		if provisioned {
			break
		}
		out = append(out, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "in-" + zone},
			Spec: corev1.PersistentVolumeSpec{StorageClassName: class, Capacity: size,
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}})
	}
	return out
}

// TestPodsThatShareAVolume: where the first pod of a gang goes says where a volume is bound that the others use too.
// All nodes that do not reach it are found at once, and nothing of it remains.
func TestPodsThatShareAVolume(t *testing.T) {
	const away = "node(s) didn't find available persistent volumes to bind"
	for name, c := range map[string]struct {
		provisioned bool
		on          []string
		turned      map[string]string // why, by node
	}{
		"in one zone":                   {on: []string{"n0", "n2"}},
		"in two zones":                  {on: []string{"n0", "n1"}, turned: map[string]string{"n1": away, "n3": away}},
		"of a provisioner, on one node": {provisioned: true, on: []string{"n0", "n0"}},
		"of a provisioner, on two nodes": {true, []string{"n1", "n3"},
			map[string]string{"n0": away, "n2": away, "n3": away}},
	} {
		t.Run(name, func(t *testing.T) {
			check := &book.Check{Nodes: []string{"n0", "n1", "n2", "n3"}}
			var nodes []*corev1.Node
			for i, name := range check.Nodes {
				nodes = append(nodes, cpuNode(name))
				nodes[i].Labels["zone"] = fmt.Sprint("z", i%2)
			}
			for i, node := range c.on {
				pod := rankPod(fmt.Sprint("rank", i), "4", "1", false)
				pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
				check.Places = append(check.Places, book.Place{Pod: pod, Node: node})
			}
			snapshot := cache.NewSnapshot(nil, nodes)
			plugins := judged{stored: dataset(c.provisioned), by: []string{names.VolumeBinding}}.framework(t, snapshot)
			for _, places := range [][]book.Place{check.Places, check.Places, check.Places[1:]} {
				v := &verifier{plugins: plugins, snapshot: snapshot, knows: func(*corev1.Node) bool { return true }, over: never}
				sure := v.verify(t.Context(), &book.Check{Places: places, Nodes: check.Nodes})
				got, want := map[string]string{}, c.turned
				for _, turning := range v.turned {
					got[turning.Node] = turning.Why
				}
				if len(places) == 1 || want == nil {
					want = map[string]string{} // the volume is not bound to where another would have gone
				}
				if diff := cmp.Diff(want, got); diff != "" || !sure {
					t.Errorf("%d pods: it is sure: %v; turned down (-want +got):\n%s", len(places), sure, diff)
				}
			}
		})
	}
}
