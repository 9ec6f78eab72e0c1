package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

func gpus(n string) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
}

// cluster is an API server with one process that reconciles Runs, and with what plays the scheduler and the kubelets.
type cluster struct {
	*server
	*reconciler
	t     *testing.T
	clock *clocktesting.FakeClock
	told  *events.FakeRecorder
	made  int // pods, which have UIDs from when they are seen
	// runsHang says that the watch of Runs tells nothing for now, and podsHang that that of our pods does not.
	runsHang, podsHang bool
}

// newCluster has two nodes of eight GPUs, which a Budget pays for.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	budget := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1}, Spec: rqv1.BudgetSpec{Owner: "o",
		Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 16}}}}
	objects := []runtime.Object{nodeOf8("n0"), nodeOf8("n1"), budget}
	c := &cluster{server: newServer(t, objects...), t: t, clock: clocktesting.NewFakeClock(noon),
		told: events.NewFakeRecorder(100)}
	c.restart()
	t.Cleanup(func() { c.shutDown() })
	return c
}

// restart has another process take over, which knows what the API server tells it.
func (c *cluster) restart() {
	args, err := config.Parse(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	o := &Options{Args: args, Book: book.New(args), Clock: c.clock, Kube: c.kube, Client: c.kinds, events: c.told,
		doubt: believing(c.clock), Shared: informers.NewSharedInformerFactory(c.kube, 0)}
	if c.reconciler != nil {
		c.shutDown()
	}
	c.reconciler = newReconciler(o, newWatches(nil, c.kube), func([]string) {})
	c.decides.Store(true)
	for _, name := range []string{"n0", "n1"} {
		c.book.SetNode(nodeOf8(name))
	}
	list := listed[rqv1.BudgetList](c)
	for i := range list.Items {
		c.book.Budgets.SetBudget(&list.Items[i])
	}
	c.see()
	c.book.Begin(c.clock.Now())
}

// listed asks for all objects of one of our kinds.
func listed[L any, P interface {
	*L
	client.ObjectList
}](c *cluster) *L {
	list := P(new(L))
	if err := c.kinds.List(c.t.Context(), list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// kept brings a cache up to what the API server has, and calls set for what is there and drop for what is gone.
func kept[T any, P interface {
	*T
	client.Object
}](c *cluster, in cache.SharedIndexInformer, items []T, set, drop func(P)) {
	was := in.GetStore().List()
	is := make([]any, len(items))
	for i := range items {
		is[i] = P(&items[i])
	}
	if err := in.GetStore().Replace(is, ""); err != nil {
		c.t.Fatal(err)
	}
	for _, o := range was {
		old := o.(P)
		if !slices.ContainsFunc(is, func(o any) bool { return o.(P).GetUID() == old.GetUID() }) {
			drop(old)
		}
	}
	for _, o := range is {
		set(o.(P))
	}
}

// see has the caches and the book see what the API server has, as far as watches tell.
func (c *cluster) see() {
	if !c.runsHang {
		kept(c, c.watches.runs, listed[rqv1.RunList](c).Items, c.book.SetRun, c.book.DeleteRun)
	}
	leases := slices.DeleteFunc(listed[rqv1.LeaseList](c).Items, func(l rqv1.Lease) bool { return l.Status.Closed })
	kept(c, c.watches.leases, leases, func(l *rqv1.Lease) { c.book.SetLease(l) },
		func(l *rqv1.Lease) { c.book.LeaseGone(client.ObjectKeyFromObject(l)) })
	kept(c, c.watches.reservations, listed[rqv1.ReservationList](c).Items, c.book.SetReservation,
		c.book.DeleteReservation)
	pods, err := c.kube.CoreV1().Pods("").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].UID == "" {
			c.made++
			pods.Items[i].UID = types.UID(fmt.Sprintf("pod%d", c.made))
			c.update(&pods.Items[i])
		}
	}
	if c.podsHang {
		return
	}
	ranked := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Labels[rqv1.LabelRun] == "" })
	kept(c, c.watches.pods, ranked,
		func(p *corev1.Pod) {
			c.watches.unseen.told(p)
			c.book.SetPod(p)
			c.book.SetMember(p)
		},
		func(p *corev1.Pod) {
			c.watches.unseen.told(p)
			c.tellGone(p)
			c.book.DeletePod(p)
			c.book.DeleteMember(p)
		})
}

// update writes over a pod, as a kubelet or the scheduler does.
func (c *cluster) update(pod *corev1.Pod) {
	if err := c.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil {
		c.t.Fatal(err)
	}
}

// look has the API server seen and Run train looked at, and returns what was written and whether that went well.
func (c *cluster) look() ([]string, error) {
	c.see()
	_, err := c.reconcile(c.t.Context(), train)
	return c.written(), err
}

// submit makes Run train, of two pods of eight GPUs each.
func (c *cluster) submit(changes ...func(*rqv1.Run)) {
	size := int32(8)
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "run", Generation: 1,
		CreationTimestamp: metav1.NewTime(c.clock.Now())},
		Spec: rqv1.RunSpec{Owner: "o", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 16, GPUsPerPod: &size}}}
	for _, change := range changes {
		change(run)
	}
	if err := c.kinds.Create(c.t.Context(), run); err != nil {
		c.t.Fatal(err)
	}
	c.written()
}

// bind has the pods that are there bound, each with its Lease.
func (c *cluster) bind() {
	c.bindAllBut("")
	c.see()
	c.written()
}

// bindAllBut has the pods that are there bound, but for one whose Lease it returns, which is on its way.
func (c *cluster) bindAllBut(name string) (late *rqv1.Lease) {
	c.see()
	now := c.clock.Now()
	if c.lead() {
		if _, err := c.look(); err != nil {
			c.t.Fatal(err)
		}
		c.see()
	}
	pods := c.unbound()
	for _, pod := range pods {
		node, refusal := c.book.Place(pod.UID, now)
		if refusal != nil {
			c.t.Fatalf("pod %s: %s", pod.Name, refusal.Message)
		}
		if err := c.book.Reserve(pod.UID, node); err != nil {
			c.t.Fatal(err)
		}
		c.book.Arrive(pod.UID, now)
		pod.Spec.NodeName = node
	}
	for _, pod := range pods {
		lease, err := c.book.NewLease(pod.UID, now)
		if err != nil {
			c.t.Fatal(err)
		}
		lease.UID = types.UID("lease-of-" + pod.Name)
		if pod.Name == name {
			late = lease
			continue
		}
		if err := c.kinds.Create(c.t.Context(), lease); err != nil {
			c.t.Fatal(err)
		}
		c.update(pod)
	}
	return late
}

// lead has the first pod that is not bound get its place, which has the others be made.
func (c *cluster) lead() bool {
	c.see()
	pods := c.unbound()
	if len(pods) == 0 || c.book.Gate(pods[0]) != "" {
		return false
	}
	node, refusal := c.book.Place(pods[0].UID, c.clock.Now())
	return refusal == nil && c.book.Reserve(pods[0].UID, node) == nil
}

// unbound returns the pods without a node, as the cache has them, in order.
func (c *cluster) unbound() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, o := range c.watches.pods.GetStore().List() {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == "" {
			pods = append(pods, pod.DeepCopy())
		}
	}
	slices.SortFunc(pods, func(x, y *corev1.Pod) int { return c.less(x, y) })
	return pods
}

func (c *cluster) less(x, y *corev1.Pod) int {
	if c.book.Less(x, y) {
		return -1
	}
	return 1
}

// become has a pod be in a phase, as its kubelet says.
func (c *cluster) become(phase corev1.PodPhase, ranks ...int) {
	for _, rank := range ranks {
		pod, err := c.kube.CoreV1().Pods("ns").Get(c.t.Context(), fmt.Sprintf("train-%d", rank), metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		pod.Status.Phase = phase
		if phase == corev1.PodRunning {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(c.clock.Now())}}
		}
		c.update(pod)
	}
	c.clock.Step(time.Second)
}

// run is Run train, as it is stored.
func (c *cluster) run() *rqv1.Run {
	run := &rqv1.Run{}
	if err := c.kinds.Get(c.t.Context(), train, run); err != nil {
		c.t.Fatal(err)
	}
	return run
}
