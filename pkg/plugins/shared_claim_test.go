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

// bindTo has a claim among some objects be bound to a volume.
func bindTo(objects []runtime.Object, volume string) {
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.PersistentVolumeClaim:
			o.Spec.VolumeName, o.Status.Phase = volume, corev1.ClaimBound
			o.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		case *corev1.PersistentVolume:
			if o.Name == volume {
				o.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "data"}
				o.Status.Phase = corev1.VolumeBound
			}
		}
	}
}

// TestPodsThatShareAVolume: where the first pod of a gang goes says where a volume is bound that the others use too.
// All nodes that do not reach it are found at once, those that are full included, and that it is for the others' sake,
// unless it is bound already. Nothing of it remains.
func TestPodsThatShareAVolume(t *testing.T) {
	const away = "node(s) didn't find available persistent volumes to bind"
	for name, c := range map[string]struct {
		provisioned bool
		bound       string // to which volume
		on          []string
		turned      map[string]string // why, by node
	}{
		"in one zone":                   {on: []string{"n0", "n2"}},
		"in two zones":                  {on: []string{"n0", "n1"}, turned: map[string]string{"n1": away, "n3": away}},
		"of a provisioner, on one node": {provisioned: true, on: []string{"n0", "n0"}},
		"of a provisioner, on two nodes": {provisioned: true, on: []string{"n1", "n2"},
			turned: map[string]string{"n0": away, "n2": away, "n3": away}},
		"where it is bound": {bound: "in-z0", on: []string{"n0", "n1"},
			turned: map[string]string{"n1": "node(s) didn't match PersistentVolume's node affinity"}},
	} {
		t.Run(name, func(t *testing.T) {
			check := &book.Check{Serving: []string{"n0", "n1", "n2", "n3"}}
			var nodes []*corev1.Node
			for i, name := range check.Serving {
				nodes = append(nodes, cpuNode(name))
				nodes[i].Labels["zone"] = fmt.Sprint("z", i%2)
			}
			for i, node := range c.on {
				pod := rankPod(fmt.Sprint("rank", i), "4", "1", false)
				pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
				check.Places = append(check.Places, book.Place{Pod: pod, Node: node})
			}
			snapshot := cache.NewSnapshot([]*corev1.Pod{other("holder", "n3", "8", "1")}, nodes)
			stored := dataset(c.provisioned)
			if c.bound != "" {
				bindTo(stored, c.bound)
			}
			plugins := judged{stored: stored, by: []string{names.VolumeBinding}}.framework(t, snapshot)
			for _, places := range [][]book.Place{check.Places, check.Places, check.Places[1:]} {
				v := &verifier{plugins: plugins, snapshot: snapshot, knows: func(*corev1.Node) bool { return true }, over: never}
				sure := v.verify(t.Context(), &book.Check{Places: places, Serving: check.Serving})
				got, want := map[string]string{}, c.turned
				for _, turning := range v.turned {
					got[turning.Node] = turning.Why
					if turning.Shared != (c.bound == "") {
						t.Errorf("%s turned it down for what the others have bound: %v", turning.Node, turning.Shared)
					}
				}
				if len(places) == 1 && c.bound == "" || want == nil {
					want = map[string]string{} // the volume is not bound to where another would have gone
				}
				if diff := cmp.Diff(want, got); diff != "" || !sure {
					t.Errorf("%d pods: it is sure: %v; turned down (-want +got):\n%s", len(places), sure, diff)
				}
			}
		})
	}
}

// Nodes that no volume reaches, wherever the first pod of a gang goes, are told from those that only what it has bound
// does not reach.
func TestNodesThatNoVolumeReaches(t *testing.T) {
	check := &book.Check{Serving: []string{"n0", "n1", "n2"}, Nodes: []string{"n0", "n1", "n2"}}
	var nodes []*corev1.Node
	for i, name := range check.Serving {
		nodes = append(nodes, cpuNode(name))
		nodes[i].Labels["zone"] = fmt.Sprint("z", i)
		pod := rankPod(fmt.Sprint("rank", i), "4", "1", false)
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		check.Places = append(check.Places, book.Place{Pod: pod, Node: name})
	}
	snapshot := cache.NewSnapshot(nil, nodes)
	plugins := judged{stored: dataset(false), by: []string{names.VolumeBinding}}.framework(t, snapshot)
	v := &verifier{plugins: plugins, snapshot: snapshot, knows: func(*corev1.Node) bool { return true }, over: never}
	v.verify(t.Context(), check)
	v.lookAround(t.Context(), check)
	got := map[string]bool{}
	for _, turning := range v.turned {
		got[turning.Node] = turning.Shared
	}
	if diff := cmp.Diff(map[string]bool{"n1": true, "n2": false}, got); diff != "" {
		t.Errorf("turned down for what others have bound (-want +got):\n%s", diff)
	}
}
