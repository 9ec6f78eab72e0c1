package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

const (
	massSize    = 20    // nodes of a domain
	massGrace   = "25s" // a machine that is busy may keep kwok from renewing 1,000 leases in time
	massHeldFor = 8 * time.Second
)

// There are 1,000 nodes in a soak, and 40 otherwise, with Runs of two pods and a spare each. massStruck nodes show a
// sign at once.
var (
	massDomains = full(50, 2)
	massRuns    = full(60, 6)
	massStruck  = full(400, 16)
)

// fleet is a large fleet with Runs on it, each with a spare.
type fleet struct {
	*site
	// before are the pods as they were, by name; struck the nodes that are to show a sign.
	before map[string]corev1.Pod
	struck []string
	// spared are Runs on other nodes, which lose one for certain.
	spared []string
}

// TestMassLoss has 40 % of many nodes show a sign of loss at once, first by silence, then by a condition: none of them
// is taken for lost but, of the condition's, the few that show it before the others do, and it is told, while nodes
// that are deleted or out of service are replaced as ever. When the sign is gone all goes on: a single node with the
// same sign is lost.
func TestMassLoss(t *testing.T) {
	s := newSite(t, ownCluster(t, withoutElection,
		map[string]any{"nodeLossGrace": massGrace, "nodeLossConditions": []string{brokenGPU}}),
		massDomains, massSize, int32(4*massRuns*8))
	s.startScheduler()
	f := &fleet{site: s}
	f.fill()

	f.each(f.struck, f.silenceOne)
	f.heldBack("KubeletLeaseStale")
	f.swappedMeanwhile(f.spared[0], func(node *corev1.Node) { f.delete(node) })
	f.swappedMeanwhile(f.spared[1], func(node *corev1.Node) {
		edit(s, node, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown",
				Effect: corev1.TaintEffectNoExecute})
		})
	})
	f.staysUntouched()
	f.each(f.struck, func(ctx context.Context, node string) error {
		return s.api.Delete(ctx,
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}})
	})
	f.released()

	slices.Reverse(f.struck) // nodes that are empty come first, and are more than the limit
	used := len(f.struck) - (massRuns - len(f.spared))
	f.each(f.struck[:used], f.breakOne)
	f.each(f.struck[used:], f.breakOne)
	f.heldBack("NodeCondition")
	f.staysUntouched()
	named := f.before["mass-0-0"].Spec.NodeName
	if out := s.runs("nodes"); !strings.Contains(out, "HeldBack") || !strings.Contains(out, "Lost") {
		t.Errorf("kubectl runs nodes:\n%.2000s", out)
	}
	s.runs("nodes lost " + named + " --because gone")
	s.await("mass-0", rqv1.RunRunning, swappedMessage)
	f.each(f.struck, f.mendOne)
	delete(f.before, "mass-0-0")
	delete(f.before, "mass-0-s0")
	f.released()

	if err := f.breakOne(t.Context(), f.before["mass-1-0"].Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	s.await("mass-1", rqv1.RunRunning, swappedMessage)
	s.settled()
}

// fill starts the Runs, and chooses which nodes are struck: those of the first pods of all Runs but two, and others
// that are empty.
func (f *fleet) fill() {
	f.t.Helper()
	for i := range massRuns {
		f.submit(fmt.Sprintf("mass-%d", i), 16, inPods(8), inGroups(16), withSpares(8))
	}
	for i := range massRuns {
		f.await(fmt.Sprintf("mass-%d", i), rqv1.RunRunning, "bound 16 GPUs")
	}
	var err error
	if f.before, err = f.pods(); err != nil {
		f.t.Fatal(err)
	}
	f.spared = []string{fmt.Sprintf("mass-%d", massRuns-2), fmt.Sprintf("mass-%d", massRuns-1)}
	used := map[string]bool{}
	for name, pod := range f.before {
		used[pod.Spec.NodeName] = true
		if strings.HasSuffix(name, "-0") && !slices.Contains(f.spared, pod.Labels[rqv1.LabelRun]) {
			f.struck = append(f.struck, pod.Spec.NodeName)
		}
	}
	for d := range massDomains {
		for i := range massSize {
			if name := fmt.Sprintf("%s-d%d-%d", f.namespace, d, i); !used[name] && len(f.struck) < massStruck {
				f.struck = append(f.struck, name)
			}
		}
	}
	f.t.Logf("%d nodes are to be struck, %d are used", len(f.struck), len(used))
}

// pods returns the pods of all Runs by name.
func (f *fleet) pods() (map[string]corev1.Pod, error) {
	var list corev1.PodList
	if err := f.api.List(f.t.Context(), &list, client.InNamespace(f.namespace)); err != nil {
		return nil, err
	}
	out := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		out[pod.Name] = pod
	}
	return out, nil
}

// each does something to nodes, many at a time.
func (f *fleet) each(nodes []string, do func(ctx context.Context, node string) error) {
	f.t.Helper()
	began := time.Now()
	group, ctx := errgroup.WithContext(f.t.Context())
	group.SetLimit(32)
	for _, node := range nodes {
		group.Go(func() error { return do(ctx, node) })
	}
	if err := group.Wait(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Logf("%d nodes were struck, or healed, within %s", len(nodes), time.Since(began).Round(time.Millisecond))
}

// silenceOne has somebody who does not renew it hold a node's kubelet lease.
func (f *fleet) silenceOne(ctx context.Context, node string) error {
	_, err := f.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, node, types.MergePatchType,
		[]byte(`{"spec":{"holderIdentity":"nobody","leaseDurationSeconds":36000}}`), metav1.PatchOptions{})
	return err
}

func (f *fleet) breakOne(ctx context.Context, node string) error {
	return f.setBroken(ctx, node, "True")
}
func (f *fleet) mendOne(ctx context.Context, node string) error {
	return f.setBroken(ctx, node, "False")
}

func (f *fleet) setBroken(ctx context.Context, node, status string) error {
	_, err := f.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"XID","message":"XID 79"}]}}`, brokenGPU,
			status),
		metav1.PatchOptions{}, "status")
	return err
}

// heldBack waits until it is told that losses are held back: by the metric, on the nodes that hold Runs, and by these.
func (f *fleet) heldBack(reason string) {
	f.t.Helper()
	eventually(f.t, "the loss of nodes is to be held back", func() error {
		held, err := f.counters(f.t.Context(), f.Scheduler, "jobtree_nodes_held_back")
		if err != nil {
			return err
		}
		if n := held["jobtree_nodes_held_back"]; n < float64(massRuns/2) {
			return fmt.Errorf("%v nodes are held back", n)
		}
		for _, name := range []string{"mass-0", "mass-1"} {
			node := &corev1.Node{}
			if err := f.api.Get(f.t.Context(), client.ObjectKey{Name: f.before[name+"-0"].Spec.NodeName}, node); err != nil {
				return err
			}
			if mark := node.Annotations[rqv1.AnnotationHeldBack]; !strings.Contains(mark, reason) {
				return fmt.Errorf("node %s says %q", node.Name, mark)
			}
			run, err := f.get(name)
			if err != nil {
				return err
			}
			if c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionNodesHeldBack); c == nil ||
				!strings.Contains(c.Message, node.Name) {
				return fmt.Errorf("Run %s says %+v", name, c)
			}
		}
		return nil
	})
}

// swappedMeanwhile takes a node from a Run for certain, and waits until the spare has replaced it.
func (f *fleet) swappedMeanwhile(run string, strike func(*corev1.Node)) {
	f.t.Helper()
	strike(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.before[run+"-1"].Spec.NodeName}})
	f.await(run, rqv1.RunRunning, swappedMessage)
	delete(f.before, run+"-1")
	delete(f.before, run+"-s0")
}

// staysUntouched lets some time pass and then looks at everything: what is torn down, or recorded as lost, stays so.
func (f *fleet) staysUntouched() {
	f.t.Helper()
	throughout(f.t, massHeldFor, "nothing is to be torn down", func() error {
		pod := f.before["mass-2-0"]
		return f.api.Get(f.t.Context(), client.ObjectKeyFromObject(&pod), &corev1.Pod{})
	})
	if err := f.untouched(); err != nil {
		f.t.Error(err)
	}
}

// untouched is an error if a pod is gone or told to go, or more nodes were taken for lost than a few.
func (f *fleet) untouched() error {
	pods, err := f.pods()
	if err != nil {
		return err
	}
	for name, was := range f.before {
		if pod, there := pods[name]; !there || pod.UID != was.UID || pod.DeletionTimestamp != nil {
			err = errors.Join(err, fmt.Errorf("pod %s is another, or goes", name))
		}
	}
	var nodes corev1.NodeList
	if listed := f.api.List(f.t.Context(), &nodes); listed != nil {
		return listed
	}
	var lost []string
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if record := n.Annotations[rqv1.AnnotationLost]; record != "" && !strings.Contains(record, "OutOfService") {
			lost = append(lost, n.Name+": "+record)
		}
	}
	if len(lost) > nodeloss.Few {
		err = errors.Join(err, fmt.Errorf("nodes are lost: %s", strings.Join(lost, "; ")))
	}
	return err
}

// released waits until nothing is held back any more, with everything as it was.
func (f *fleet) released() {
	f.t.Helper()
	eventually(f.t, "nothing is to be held back any more", func() error {
		held, err := f.counters(f.t.Context(), f.Scheduler, "jobtree_nodes_held_back")
		if err != nil {
			return err
		}
		if n := held["jobtree_nodes_held_back"]; n != 0 {
			return fmt.Errorf("%v nodes are held back", n)
		}
		var nodes corev1.NodeList
		if err := f.api.List(f.t.Context(), &nodes); err != nil {
			return err
		}
		for i := range nodes.Items {
			if mark := nodes.Items[i].Annotations[rqv1.AnnotationHeldBack]; mark != "" {
				return fmt.Errorf("node %s says %q", nodes.Items[i].Name, mark)
			}
		}
		return nil
	})
	for name, was := range f.before {
		pod := &corev1.Pod{}
		if err := f.api.Get(f.t.Context(), client.ObjectKeyFromObject(&was), pod); err != nil || pod.UID != was.UID ||
			pod.DeletionTimestamp != nil {
			f.t.Errorf("pod %s is another, or goes: %v", name, err)
		}
	}
}
