package book_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

const (
	flavor       = "H100-80GB"
	gpusPerNode  = 8
	gangDeadline = time.Minute

	reservationLead  = 2 * time.Minute
	longestGrace     = 90 * time.Second
	activationShield = 3 * time.Minute
)

// world is a cluster in memory: the API objects, the scheduler's cycles and bindings under way, and the book under test.
// The book learns of the objects only by the events that the world delivers.
type world struct {
	t       *rapid.T
	book    *book.Book
	order   *reconcile.Runs
	now     time.Time
	nextUID int

	nodes   map[string]*corev1.Node
	budgets map[string]*rqv1.Budget
	runs    map[string]*rqv1.Run
	pods    map[types.UID]*corev1.Pod
	leases  map[string]*rqv1.Lease
	// services are the Services of Runs, by name, and the Runs.
	services map[string]types.UID
	// activation is the Reservation that is activating; nil when none is.
	activation *rqv1.Reservation

	// fuse is how many more writes the Run controller comes to before it is killed; 0 when it is not.
	fuse    int
	crashes int

	queue   map[types.UID]bool                 // pods that the scheduling queue is going to try
	retries map[types.NamespacedName]time.Time // when Runs are to be planned again whose nodes were rejected
	waiting map[types.UID]time.Time            // pods at the barrier, and until when
	binding map[types.UID]string               // pods past the barrier, and their nodes
	rejects map[string]string                  // nodes that other scheduling rules turn down, and why

	faults
	brakes
	storm *storm // nil in a world without Reservations
	// replays has each decision be made again.
	replays bool
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		nodes: map[string]*corev1.Node{}, budgets: map[string]*rqv1.Budget{}, runs: map[string]*rqv1.Run{},
		pods: map[types.UID]*corev1.Pod{}, leases: map[string]*rqv1.Lease{}, services: map[string]types.UID{},
		waiting: map[types.UID]time.Time{}, binding: map[types.UID]string{},
		queue: map[types.UID]bool{}, retries: map[types.NamespacedName]time.Time{}, rejects: map[string]string{}, faults: newFaults(),
	}
	w.boot(false)
	return w
}

// boot has a process begin that has read everything there is.
func (w *world) boot(shuffle bool) {
	w.book = w.rebuilt(shuffle)
	w.order = reconcile.New(w.book, w, rules, func() time.Time { return w.now })
}

func (w *world) uid() types.UID {
	w.nextUID++
	return types.UID(fmt.Sprintf("%08d-uid", w.nextUID))
}

// rebuilt returns a book that has read everything there is, in an order of its own.
func (w *world) rebuilt(shuffle bool) *book.Book {
	args, err := config.Parse([]byte(fmt.Sprintf("{nodeLossConditions: [Broken], maxGracePeriod: %s, gangDeadline: %s, reservationLead: %s, activationShield: %s, windowDelay: 1s}",
		longestGrace, gangDeadline, reservationLead, activationShield)))
	if err != nil {
		w.t.Fatal(err)
	}
	b := book.New(args)
	w.engage(b)
	b.SetLotteryKey([]byte("key"))
	var events []func()
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		events = append(events, func() { b.SetNode(w.nodes[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.budgets)) {
		events = append(events, func() { b.SetBudget(w.budgets[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.runs)) {
		events = append(events, func() { b.SetRun(w.runs[name]) })
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		events = append(events, func() { b.SetPod(w.pods[uid]) }, func() { b.SetMember(w.pods[uid]) })
	}
	var ledger []func() // closed Leases are not watched, but read at the end
	for _, name := range slices.Sorted(maps.Keys(w.leases)) {
		if w.leases[name].Status.Closed {
			ledger = append(ledger, func() { b.SetLease(w.leases[name]) })
			continue
		}
		events = append(events, func() { b.SetLease(w.leases[name]) })
	}
	if w.activation != nil {
		events = append(events, func() { b.SetReservation(w.activation) })
	}
	events = append(events, w.storm.events(b)...)
	if shuffle {
		events = rapid.Permutation(events).Draw(w.t, "order of events")
	}
	for _, event := range slices.Concat(events, ledger) {
		event()
	}
	w.storm.setKey(b)
	b.Open(w.now)
	return b
}

// crash loses everything that only the process knew.
func (w *world) crash() {
	w.crashes++
	clear(w.waiting)
	clear(w.binding)
	for uid := range w.pods {
		w.queue[uid] = true
	}
	w.boot(true)
}

func (w *world) addNode(name, domain string) {
	w.nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"region": "r", "cluster": "c", "fabric.domain": domain, "gpu.flavor": flavor,
		}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpusPerNode, resource.DecimalSI)}},
	}
	w.book.SetNode(w.nodes[name])
	w.revive(name)
}

// revive has the kubelet of a node end what terminates there.
func (w *world) revive(node string) {
	for _, uid := range w.sortedPods() {
		if pod := w.pods[uid]; pod.Spec.NodeName == node && pod.DeletionTimestamp != nil {
			w.deletePod(uid)
		}
	}
}

// removeNode deletes a node and, as the pod garbage collector does, the pods on it.
func (w *world) removeNode(name string) {
	delete(w.nodes, name)
	w.book.RemoveNode(name)
	for _, uid := range w.sortedPods() {
		if w.pods[uid].Spec.NodeName == name {
			w.deletePod(uid)
		}
	}
}

func (w *world) setBudget(name string, owner rqv1.Owner, gpus int) {
	w.budgets[name] = &rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: int64(w.nextUID)},
		Spec:       rqv1.BudgetSpec{Owner: owner, Envelopes: []rqv1.Envelope{{Name: "e", Flavor: flavor, Concurrency: int32(gpus)}}},
	}
	w.nextUID++
	w.book.SetBudget(w.budgets[name])
}

func (w *world) submit(name string, owner rqv1.Owner, groups, podsPerGroup, gpusPerPod int) {
	w.submitWithSpares(name, owner, groups, podsPerGroup, gpusPerPod, 0)
}

// elastic lets a Run start with fewer pods, down to least, by steps.
func elastic(least, step int) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		size := *s.Resources.GPUsPerPod
		s.Malleable = &rqv1.RunMalleable{MinTotalGPUs: int32(least) * size, MaxTotalGPUs: s.Resources.TotalGPUs, StepGPUs: int32(step) * size}
	}
}

// ungrouped lets the pods of a Run lie anywhere.
func ungrouped(s *rqv1.RunSpec) { s.Locality = nil }

// submitWithSpares submits a Run with so many spare pods in each group, and with changes.
func (w *world) submitWithSpares(name string, owner rqv1.Owner, groups, podsPerGroup, gpusPerPod, spares int, changes ...func(*rqv1.RunSpec)) {
	group, total, size := int32(podsPerGroup*gpusPerPod), int32(groups*podsPerGroup*gpusPerPod), int32(gpusPerPod)
	spareGPUs := int32(spares * gpusPerPod)
	run := &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: w.uid(), Generation: 1, CreationTimestamp: metav1.NewTime(w.now.Truncate(time.Second))},
		Spec: rqv1.RunSpec{
			Owner: owner, Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: total, GPUsPerPod: &size},
			Locality: &rqv1.RunLocality{GroupGPUs: &group}, SparesPerGroup: &spareGPUs,
		},
		Status: rqv1.RunStatus{Phase: rqv1.RunPending, Message: lifecycle.Waiting}, // the API's default
	}
	for _, change := range changes {
		change(&run.Spec)
	}
	w.runs[name] = run
	w.book.SetRun(run)
}

func (w *world) deleteRun(name string) {
	w.book.DeleteRun(w.runs[name])
	delete(w.runs, name)
	for _, uid := range w.sortedPods() {
		if w.pods[uid].Labels[rqv1.LabelRun] == name {
			w.terminate(uid)
		}
	}
}

func (w *world) setPod(pod *corev1.Pod) {
	if w.pods[pod.UID] == nil {
		w.queue[pod.UID] = true
	}
	w.pods[pod.UID] = pod
	w.book.SetMember(pod)
	w.book.SetPod(pod)
}

func (w *world) deletePod(uid types.UID) {
	pod := w.pods[uid]
	delete(w.pods, uid)
	w.book.DeletePod(pod)
	w.book.DeleteMember(pod)
	w.unreserve(uid)
}

func (w *world) endPod(uid types.UID, phase corev1.PodPhase) {
	pod := w.pods[uid].DeepCopy()
	pod.Status.Phase = phase
	w.setPod(pod)
}

// rules are those of the worlds' configuration that decisions go by.
var rules = lifecycle.Rules{GangDeadline: gangDeadline, NoticePeriod: noticePeriod, OpportunisticGrace: time.Second, MaxGracePeriod: longestGrace,
	GPUResource: "nvidia.com/gpu", PauseImage: "pause"}
