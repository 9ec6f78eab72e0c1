package plugins

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// devicesOf returns what has a framework know devices that drivers publish and claims ask for.
func devicesOf(ctx context.Context, t testing.TB, kube kubernetes.Interface,
	shared informers.SharedInformerFactory) frameworkruntime.Option {
	t.Helper()
	slices, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		SliceInformer: shared.Resource().V1().ResourceSlices(), KubeClient: kube})
	if err != nil {
		t.Fatal(err)
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), shared.Resource().V1().ResourceClaims().Informer(),
		"claim", "", nil)
	return frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, shared))
}

// adapters is a network adapter on each of some nodes, and a claim of one for each of some pods.
func adapters(nodes []*corev1.Node, pods []*corev1.Pod) []runtime.Object {
	out := []runtime.Object{&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "adapter"}}}
	for _, node := range nodes {
		out = append(out, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "of-" + node.Name},
			Spec: resourceapi.ResourceSliceSpec{Driver: "example.com", NodeName: &node.Name,
				Pool:    resourceapi.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
				Devices: []resourceapi.Device{{Name: "a0"}}}})
	}
	for _, pod := range pods {
		name, template, controls := pod.Name+"-nic", "nic", true
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "nic", ResourceClaimTemplateName: &template}}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "nic", ResourceClaimName: &name}}
		out = append(out, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name,
			UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
				UID: pod.UID, Controller: &controls}}},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "nic", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "adapter",
					AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}}}})
	}
	return out
}

// TestPodsThatClaimDevices: a device that the first pod of a gang is going to have is no other's.
func TestPodsThatClaimDevices(t *testing.T) {
	for name, c := range map[string]struct {
		on   []string
		want []book.Turning
	}{
		"one on each node": {on: []string{"n0", "n1"}},
		"two on one": {[]string{"n0", "n0"}, []book.Turning{{Pod: "rank1", Node: "n0", Most: 1,
			Why: "cannot allocate all claims"}}},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []*corev1.Node{cpuNode("n0"), cpuNode("n1")}
			check := &book.Check{}
			var pods []*corev1.Pod
			for i, node := range c.on {
				pods = append(pods, rankPod(fmt.Sprint("rank", i), "1", "1", false))
				check.Places = append(check.Places, book.Place{Pod: pods[i], Node: node})
			}
			snapshot := cache.NewSnapshot(nil, nodes)
			plugins := judged{stored: adapters(nodes, pods), by: []string{names.DynamicResources}}.framework(t, snapshot)
			err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
				func(context.Context) (bool, error) { return equipped(plugins, check.Places), nil })
			if err != nil {
				t.Error("its claims are not there")
			}
			for range 2 { // nothing remains of the first time
				v := &verifier{plugins: plugins, snapshot: snapshot, knows: func(*corev1.Node) bool { return true }, over: never}
				if sure := v.verify(t.Context(), check); !sure {
					t.Error("it is not sure")
				}
				if diff := cmp.Diff(c.want, v.turned); diff != "" {
					t.Errorf("turned down (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestPodsWhoseClaimsAreNotMade: a pod comes before its claims.
func TestPodsWhoseClaimsAreNotMade(t *testing.T) {
	nodes, pod := []*corev1.Node{cpuNode("n0")}, rankPod("rank0", "1", "1", false)
	stored := adapters(nodes, []*corev1.Pod{pod})
	snapshot := cache.NewSnapshot(nil, nodes)
	late := judged{stored: stored[:len(stored)-1], by: []string{names.DynamicResources}}.framework(t, snapshot)
	if equipped(late, []book.Place{{Pod: pod, Node: "n0"}}) {
		t.Error("it takes a claim for made that is not there")
	}
	pod.Spec.ResourceClaims, pod.Status.ResourceClaimStatuses = nil, nil
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	if equipped(late, []book.Place{{Pod: pod, Node: "n0"}}) {
		t.Error("it takes a volume's claim for made that is not there")
	}
}
