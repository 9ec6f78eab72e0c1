package plugins

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// barrier is where pods of the scheduler's wait for Permit, and tells what becomes of them.
type barrier struct {
	snapshot
	waits map[types.UID]bool
	told  []string
}

type waiting struct {
	fwk.WaitingPod
	at  *barrier
	pod types.UID
}

func (b *barrier) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	if !b.waits[uid] {
		return nil
	}
	return &waiting{at: b, pod: uid}
}

func (w *waiting) Allow(string) {
	w.at.told = append(w.at.told, "allowed "+string(w.pod))
	delete(w.at.waits, w.pod)
}

func (w *waiting) Reject(string, string) bool {
	w.at.told = append(w.at.told, "rejected "+string(w.pod))
	delete(w.at.waits, w.pod)
	return true
}

// gang is a Run of some pods of eight GPUs each, on as many nodes, and the plugin that places them.
type gang struct {
	*Jobtree
	t       *testing.T
	pods    []*corev1.Pod
	clock   *clocktesting.FakeClock
	barrier *barrier
	// answer, where it is set, is what the API server says to a request; with stored it does what was asked all the same.
	answer map[string]error
	stored bool
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "r", "cluster": "c",
		"fabric.domain": "d", "gpu.flavor": "H100"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}
}

// rankOf is a pod of eight GPUs of a Run.
func rankOf(run string, index int) *corev1.Pod {
	controls := true
	name := fmt.Sprintf("%s-%d", run, index)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		Labels: map[string]string{rqv1.LabelRun: run, rqv1.LabelIndex: fmt.Sprint(index), rqv1.LabelGroupIndex: "0",
			rqv1.LabelRole: string(rqv1.RoleActive)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: rqv1.GroupVersion.String(), Kind: "Run", Name: run,
			UID: types.UID(run), Controller: &controls}}}}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}}
	return pod
}

func newGang(t *testing.T, size int) *gang {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gang{t: t, clock: clocktesting.NewFakeClock(noon), barrier: &barrier{waits: map[types.UID]bool{}}}
	b, perPod := book.New(args), int32(8)
	for i := range size {
		node := nodeNamed(fmt.Sprint("n", i))
		b.SetNode(node)
		g.barrier.nodes = append(g.barrier.nodes, node)
	}
	b.Budgets.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1},
		Spec: rqv1.BudgetSpec{Owner: "org", Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 800}}}})
	b.SetRun(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "run", Generation: 1,
		CreationTimestamp: metav1.NewTime(noon)}, Spec: rqv1.RunSpec{Owner: "org",
		Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: int32(8 * size), GPUsPerPod: &perPod}}})
	for i := range size {
		g.pods = append(g.pods, rankOf("run", i))
		b.SetMember(g.pods[i])
	}
	b.Begin(noon)
	b.ToQueue().Take()
	scheme := runtime.NewScheme()
	if err := rqv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ledger := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return g.say("create", func() error { return c.Create(ctx, o, options...) })
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			return g.say("get", func() error { return c.Get(ctx, key, o, options...) })
		},
	})
	g.Jobtree = &Jobtree{handle: g.barrier, book: b, ledger: ledger, clock: g.clock, process: t.Context(),
		turnstile: newTurnstile(bindings, replacing)}
	return g
}

func (g *gang) say(verb string, do func() error) error {
	err := g.answer[verb]
	if err == nil || g.stored {
		err = errors.Join(do(), err)
		if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) == 1 {
			err = joined.Unwrap()[0]
		}
	}
	return err
}

// cycle has a pod go through PreFilter, Reserve and Permit, and returns what Permit says, or what stopped it before.
func (g *gang) cycle(index int) (*fwk.Status, time.Duration) {
	g.t.Helper()
	pod, state := g.pods[index], framework.NewCycleState()
	result, status := g.PreFilter(g.t.Context(), state, pod, nil)
	if !status.IsSuccess() {
		return status, 0
	}
	node := result.NodeNames.UnsortedList()[0]
	if status := g.Reserve(g.t.Context(), state, pod, node); !status.IsSuccess() {
		return status, 0
	}
	status, wait := g.Permit(g.t.Context(), state, pod, node)
	g.barrier.waits[pod.UID] = status.Code() == fwk.Wait
	return status, wait
}

// entering are the pods that PreEnqueue lets into the queue.
func (g *gang) entering() []string {
	var out []string
	for _, pod := range g.pods {
		if g.PreEnqueue(g.t.Context(), pod).IsSuccess() {
			out = append(out, pod.Name)
		}
	}
	return out
}

// TestAGangAtTheBarrier is let into the queue once it has a plan, waits for its last pod, and goes on together.
func TestAGangAtTheBarrier(t *testing.T) {
	g := newGang(t, 3)
	if diff := cmp.Diff([]string{"run-0"}, g.entering()); diff != "" {
		t.Errorf("in the queue without a plan (-want +got):\n%s", diff)
	}
	state := framework.NewCycleState()
	activate := framework.NewPodsToActivate()
	state.Write(framework.PodsToActivateKey, activate)
	result, status := g.PreFilter(t.Context(), state, g.pods[0], nil)
	if !status.IsSuccess() || len(result.NodeNames) != 1 {
		t.Fatalf("%v, %v", result, status)
	}
	if status := g.Reserve(t.Context(), state, g.pods[0], result.NodeNames.UnsortedList()[0]); !status.IsSuccess() {
		t.Fatal(status)
	}
	if len(activate.Map) != 2 || activate.Map["ns/run-1"] == nil || activate.Map["ns/run-2"] == nil {
		t.Errorf("activated are %v", activate.Map)
	}
	if diff := cmp.Diff([]string{"run-0", "run-1", "run-2"}, g.entering()); diff != "" {
		t.Errorf("in the queue with a plan (-want +got):\n%s", diff)
	}
	for i, want := range []fwk.Code{fwk.Wait, fwk.Wait, fwk.Success} {
		if status, wait := g.cycle(i); status.Code() != want || (wait == 2*time.Minute) != (want == fwk.Wait) {
			t.Errorf("pod %d at the barrier: %v for %s, want %v", i, status, wait, want)
		}
	}
	if len(g.barrier.told) != 2 || len(g.barrier.waits) != 1 { // the last one's own entry
		t.Errorf("told at the barrier: %v", g.barrier.told)
	}
}

// TestAGangThatDoesNotGetThrough has something happen to one of two pods while the other waits at the barrier.
func TestAGangThatDoesNotGetThrough(t *testing.T) {
	for name, test := range map[string]struct {
		happens  func(g *gang)
		rejected []types.UID // else the other gets through
	}{
		"nothing": {happens: func(*gang) {}},
		"the other's node is turned down by another rule": {happens: func(g *gang) {
			node := g.book.Assigned("run-1")
			turned := framework.NewDefaultNodeToStatus()
			turned.Set(node, fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin("VolumeBinding"))
			g.PostFilter(g.t.Context(), nil, g.pods[1], turned)
		}, rejected: []types.UID{"run-0"}},
		"the other fails as it is bound": {happens: func(g *gang) {
			g.PreFilter(g.t.Context(), nil, g.pods[1], nil)
			node := g.book.Assigned("run-1")
			g.Reserve(g.t.Context(), framework.NewCycleState(), g.pods[1], node)
			g.Unreserve(g.t.Context(), nil, g.pods[1], node)
		}, rejected: []types.UID{"run-0"}},
		"it takes too long": {happens: func(g *gang) {
			g.clock.Step(2 * time.Minute)
			if status, _ := g.cycle(1); status.Code() != fwk.Unschedulable {
				g.t.Errorf("past the deadline: %v", status)
			}
		}, rejected: []types.UID{"run-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGang(t, 2)
			if status, _ := g.cycle(0); status.Code() != fwk.Wait {
				t.Fatal(status)
			}
			g.book.ToQueue().Take()
			test.happens(g)
			if diff := cmp.Diff(test.rejected, g.book.ToQueue().Take().Reject); diff != "" {
				t.Errorf("rejected (-want +got):\n%s", diff)
			}
			if test.rejected != nil {
				if done := g.reject("run-0"); !done || len(g.barrier.told) != 1 || g.barrier.told[0] != "rejected run-0" {
					t.Errorf("told at the barrier: %v", g.barrier.told)
				}
				return
			}
			if status, _ := g.cycle(1); !status.IsSuccess() {
				t.Errorf("the other: %v", status)
			}
		})
	}
}

// TestAPlanThatHasChanged: a pod whose node was taken back meanwhile is stopped where it is.
func TestAPlanThatHasChanged(t *testing.T) {
	g := newGang(t, 2)
	node := framework.NewNodeInfo()
	g.PreFilter(t.Context(), nil, g.pods[0], nil)
	was := g.book.Assigned("run-0")
	g.book.Turned("run-0", was, "no")
	node.SetNode(nodeNamed(was))
	if status := g.Filter(t.Context(), nil, g.pods[0], node); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("Filter: %v", status)
	}
	if status := g.Reserve(t.Context(), framework.NewCycleState(), g.pods[0], was); status.Code() != fwk.Unschedulable {
		t.Errorf("Reserve: %v", status)
	}
	if status, _ := g.Permit(t.Context(), nil, g.pods[0], was); status.Code() != fwk.Unschedulable {
		t.Errorf("Permit: %v", status)
	}
	if status := g.PreBind(t.Context(), nil, g.pods[0], was); status.Code() != fwk.Error {
		t.Errorf("PreBind: %v", status)
	}
}
