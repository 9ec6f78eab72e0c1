package plugins

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// snapshot is a scheduler's view of nodes, which may be older than the book's.
type snapshot struct {
	fwk.Handle
	fwk.SharedLister
	fwk.NodeInfoLister
	nodes []*corev1.Node
}

func (s *snapshot) SnapshotSharedLister() fwk.SharedLister { return s }
func (s *snapshot) NodeInfos() fwk.NodeInfoLister          { return s }

func (s *snapshot) Get(name string) (fwk.NodeInfo, error) {
	for _, node := range s.nodes {
		if node.Name == name {
			info := framework.NewNodeInfo()
			info.SetNode(node)
			return info, nil
		}
	}
	return nil, errors.New("not found")
}

// placed returns a book in which a Run of one pod has its node.
func placed(t *testing.T) (*book.Book, *corev1.Pod) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, size, controls := book.New(args), int32(8), true
	b.SetNode(nodeNamed("n0"))
	b.Budgets.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1},
		Spec: rqv1.BudgetSpec{Owner: "org", Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 8}}}})
	b.SetRun(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "run", Generation: 1},
		Spec: rqv1.RunSpec{Owner: "org", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 8, GPUsPerPod: &size}}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-0", UID: "pod-00000",
		Labels: map[string]string{rqv1.LabelRun: "run", rqv1.LabelIndex: "0",
			rqv1.LabelRole: string(rqv1.RoleActive)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: rqv1.GroupVersion.String(), Kind: "Run", Name: "run",
			UID: "run", Controller: &controls}}}}
	pod.Spec.Containers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}}
	b.SetMember(pod)
	b.Begin(time.Now())
	if node, refusal := b.Place(pod.UID, time.Now()); node != "n0" {
		t.Fatalf("the pod is on %q: %v", node, refusal)
	}
	b.ToQueue().Take()
	return b, pod
}

// TestPostFilterOfANodeThatTheSchedulerSees has the scheduler's snapshot lack the pod's node, or have it as it was, so
// that the pod is tried there again soon; or an extender turn it down, which is a rejection like any other.
func TestPostFilterOfANodeThatTheSchedulerSees(t *testing.T) {
	tainted, closed := nodeNamed("n0"), nodeNamed("n0")
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	closed.Spec.Unschedulable = true
	beating := nodeNamed("n0")
	beating.ResourceVersion, beating.Status.Phase = "7", corev1.NodeRunning
	none, taints := "", "TaintToleration"
	for name, test := range map[string]struct {
		sees     []*corev1.Node
		plugin   string
		assigned string
	}{
		"not in the snapshot":                    {nil, none, "n0"},
		"turned down by an extender":             {[]*corev1.Node{nodeNamed("n0")}, none, ""},
		"turned down by a plugin":                {[]*corev1.Node{nodeNamed("n0")}, taints, ""},
		"so, and a heartbeat behind":             {[]*corev1.Node{beating}, taints, ""},
		"so, for a taint that is gone":           {[]*corev1.Node{tainted}, taints, "n0"},
		"so, for a cordon that is gone":          {[]*corev1.Node{closed}, "NodeUnschedulable", "n0"},
		"turned down by our own, and not as was": {[]*corev1.Node{tainted}, Name, "n0"},
	} {
		t.Run(name, func(t *testing.T) {
			b, pod := placed(t)
			pl := &Jobtree{handle: &snapshot{nodes: test.sees}, book: b, clock: clock.RealClock{}}
			nodes := framework.NewDefaultNodeToStatus()
			nodes.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no").WithPlugin(test.plugin))
			select {
			case <-b.ToQueue().Filled(): // of what came before
			default:
			}
			pl.PostFilter(t.Context(), nil, pod, nodes)
			if node := b.Assigned(pod.UID); node != test.assigned {
				t.Errorf("the pod is assigned to %q, want %q", node, test.assigned)
			}
			select {
			case <-b.ToQueue().Filled():
			case <-time.After(time.Second):
				t.Fatal("it is not tried again within a second")
			}
			activated := map[types.UID]bool{}
			for _, other := range b.ToQueue().Take().Activate {
				activated[other.UID] = true
			}
			if !activated[pod.UID] {
				t.Error("the pod is not tried again")
			}
		})
	}
}
