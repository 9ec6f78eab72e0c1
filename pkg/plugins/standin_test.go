package plugins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// leaderOf returns a book that has some nodes and a Run of two groups of one pod of eight GPUs each, and the pod of the
// Run's leader, the only one that has been made.
func leaderOf(t *testing.T, nodes []*corev1.Node) (*book.Book, *corev1.Pod) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, size, group := book.New(args), int32(8), int32(8)
	b.AskRules()
	for _, node := range nodes {
		b.SetNode(node)
	}
	b.Budgets.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1},
		Spec: rqv1.BudgetSpec{Owner: "org", Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 16}}}})
	b.SetRun(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "run", Generation: 1,
		CreationTimestamp: metav1.NewTime(noon)}, Status: rqv1.RunStatus{Phase: rqv1.RunPending},
		Spec: rqv1.RunSpec{Owner: "org", Locality: &rqv1.RunLocality{GroupGPUs: &group},
			Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 16, GPUsPerPod: &size}}})
	pod := rankPod("run-0", "8", "1", false)
	controls := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: rqv1.GroupVersion.String(), Kind: "Run", Name: "run",
		UID: "run", Controller: &controls}}
	pod.Labels[rqv1.LabelIndex], pod.Labels[rqv1.LabelGroupIndex] = "0", "0"
	pod.Labels[rqv1.LabelRunUID] = "run"
	return b, pod
}

// asked has the leader's gang be planned, and returns what other plugins turn down of its places.
func asked(t *testing.T, b *book.Book, leader *corev1.Pod, nodes []*corev1.Node, with judged) []string {
	t.Helper()
	b.SetMember(leader)
	b.Begin(noon)
	b.Place(leader.UID, noon)
	check := b.Check("run", noon)
	if check == nil || len(check.Places) != 2 {
		t.Fatalf("it is asked about %+v", check)
	}
	snapshot := cache.NewSnapshot(nil, nodes)
	v := &verifier{plugins: with.framework(t, snapshot), snapshot: snapshot,
		knows: func(*corev1.Node) bool { return true }, over: never}
	sure := v.verify(t.Context(), check)
	turned := []string{fmt.Sprintf("sure: %t", sure)}
	for _, turning := range v.turned {
		turned = append(turned, fmt.Sprintf("%s on %s: %s", turning.Pod, turning.Node, turning.Why))
	}
	return turned
}

// zoned are two nodes in zones of their own.
func zoned() []*corev1.Node {
	nodes := []*corev1.Node{cpuNode("n0"), cpuNode("n1")}
	for i, node := range nodes {
		node.Labels["zone"], node.Labels["fabric.domain"] = fmt.Sprint("z", i), fmt.Sprint("d", i)
	}
	return nodes
}

// TestRanksThatAreNotMadeHaveNoClaimsOfTheirOwn: the claims of volumes that are made for each pod alone come after the
// pod.
func TestRanksThatAreNotMadeHaveNoClaimsOfTheirOwn(t *testing.T) {
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod} {
		nodes := zoned()
		b, leader := leaderOf(t, nodes)
		class, waits := "local", storagev1.VolumeBindingWaitForFirstConsumer
		claim := corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}}
		leader.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}}}}}
		controls := true
		stored := []runtime.Object{
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.com/local",
				VolumeBindingMode: &waits},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-0-scratch",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: leader.Name,
					UID: types.UID(leader.Name), Controller: &controls}}}, Spec: claim},
		}
		got := asked(t, b, leader, nodes, judged{stored: stored, by: []string{names.VolumeBinding, names.VolumeRestrictions}})
		if diff := cmp.Diff([]string{"sure: true"}, got); diff != "" {
			t.Errorf("%s: turned down (-want +got):\n%s", mode, diff)
		}
	}
}

// TestRanksThatAreNotMadeHaveRulesOfTheirOwnGroup: of rules that are by group the API server has written the leader's
// group into the leader's.
func TestRanksThatAreNotMadeHaveRulesOfTheirOwnGroup(t *testing.T) {
	nodes := zoned()
	b, leader := leaderOf(t, nodes)
	of := func(group string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{rqv1.LabelRun: "run"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: rqv1.LabelGroupIndex,
				Operator: metav1.LabelSelectorOpIn, Values: []string{group}}}}
	}
	leader.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
			MatchLabelKeys: []string{rqv1.LabelGroupIndex}, LabelSelector: of("0")}}}}
	got := asked(t, b, leader, nodes, judged{})
	if diff := cmp.Diff([]string{"sure: true"}, got); diff != "" {
		t.Errorf("turned down (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(of("0"), leader.Spec.Affinity.PodAffinity.
		RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector); diff != "" {
		t.Errorf("the leader's rules have changed (-want +got):\n%s", diff)
	}
}
