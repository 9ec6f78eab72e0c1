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
	now     time.Time
	nextUID int

	nodes   map[string]*corev1.Node
	budgets map[string]*rqv1.Budget
	runs    map[string]*rqv1.Run
	pods    map[types.UID]*corev1.Pod
	leases  map[string]*rqv1.Lease
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
		pods: map[types.UID]*corev1.Pod{}, leases: map[string]*rqv1.Lease{},
		waiting: map[types.UID]time.Time{}, binding: map[types.UID]string{},
		queue: map[types.UID]bool{}, retries: map[types.NamespacedName]time.Time{}, rejects: map[string]string{}, faults: newFaults(),
	}
	w.book = w.rebuilt(false)
	return w
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
	w.book = w.rebuilt(true)
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

// observe looks at a Run and brings its Reservations to where they should stand. It returns false if a write failed.
func (w *world) observe(o *lifecycle.Observed) bool {
	if w.storm != nil {
		o.Reservations = w.storm.seenOf(o.Name.Name)
	}
	for {
		o.Now = w.now
		o.Look, _ = w.book.Look(o.Objects, w.now)
		if w.storm == nil {
			return true
		}
		write := lifecycle.Reserve(*o)
		if write == nil {
			return true
		}
		written, ok := w.storm.put(write)
		if !ok {
			return false
		}
		o.Reservations = append(slices.DeleteFunc(o.Reservations, func(r *rqv1.Reservation) bool { return r.Name == written.Name }), written)
	}
}

// reconcile does what the Run controller does.
func (w *world) reconcile(name string) {
	o := lifecycle.Observed{Objects: book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: name}, Run: w.runs[name]}, Rules: rules, Problem: w.problems[name]}
	for _, uid := range w.sortedPods() {
		if w.pods[uid].Labels[rqv1.LabelRun] == name {
			o.Pods = append(o.Pods, w.pods[uid])
		}
	}
	for _, lease := range w.openLeases() {
		if lease.Spec.RunRef.Name == name {
			o.Leases = append(o.Leases, lease)
		}
	}
	if !w.observe(&o) {
		return
	}
	delete(w.problems, name)
	d := lifecycle.Decide(o)
	if w.replays {
		w.replayed(o, d)
	}
	w.apply(o.Run, d)
	if w.fuse < 0 {
		w.fuse = 0
		w.crash()
	}
}

// killed reports whether the controller dies before its next write.
func (w *world) killed() bool {
	if w.fuse > 0 {
		if w.fuse--; w.fuse == 0 {
			w.fuse = -1
		}
	}
	return w.fuse < 0
}

func (w *world) apply(run *rqv1.Run, d lifecycle.Decision) {
	if d.TellFirst() {
		if w.killed() {
			return
		}
		w.setStatus(run, d.Status)
		d.Status = nil
	}
	for _, deletion := range d.Delete {
		if deletion.If == lifecycle.NodeLost && !w.lost(deletion.Node) {
			w.t.Fatalf("pod %s is deleted for a node that stands", deletion.Pod.Name)
		}
		if there := w.runs[deletion.Pod.Labels[rqv1.LabelRun]]; deletion.If == lifecycle.RunGone && there != nil && there.UID == deletion.Run {
			w.t.Fatalf("pod %s is deleted for a Run that is there", deletion.Pod.Name)
		}
		if deletion.If == lifecycle.Unpaid {
			w.t.Fatalf("pod %s is bound without a Lease", deletion.Pod.Name)
		}
		if w.killed() {
			return
		}
		w.storm.write()
		switch {
		case deletion.If == lifecycle.NodeLost:
			w.deletePod(deletion.Pod.UID)
		case !w.storm.giveNotice(deletion):
			w.terminateWithin(deletion.Pod.UID, deletion.GraceSeconds)
		}
	}
	if !w.create(d.Replace) {
		return
	}
	for _, closing := range d.Close {
		if w.leases[closing.Lease.Name].Status.Closed {
			w.t.Fatalf("I4: Lease %s is closed twice", closing.Lease.Name)
		}
		if w.killed() {
			return
		}
		lease := closing.Lease.DeepCopy()
		ended := metav1.NewMicroTime(w.now)
		if ended.Before(&lease.Spec.Start) {
			ended = lease.Spec.Start
		}
		lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: closing.Reason}
		w.storm.write()
		w.leases[lease.Name] = lease
		w.book.SetLease(lease)
	}
	if !w.create(d.Create) {
		return
	}
	if d.Retry > 0 {
		if name := (types.NamespacedName{Namespace: run.Namespace, Name: run.Name}); w.retries[name].IsZero() {
			w.retries[name] = w.now.Add(d.Retry)
		}
	}
	if d.Status != nil && !w.killed() {
		w.setStatus(run, d.Status)
	}
}

// create creates pods; false if the controller dies meanwhile.
func (w *world) create(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if w.killed() {
			return false
		}
		if !w.admits(pod.Labels[rqv1.LabelRun]) {
			return true // what is held against one pod of a gang is held against all
		}
		w.storm.write()
		pod.UID, pod.CreationTimestamp = w.uid(), metav1.NewTime(w.now.Truncate(time.Second))
		w.setPod(pod)
	}
	return true
}

func (w *world) setStatus(run *rqv1.Run, status *rqv1.RunStatus) {
	w.storm.write()
	next := run.DeepCopy()
	next.Status = *status
	w.runs[run.Name] = w.storm.stored(next)
	w.book.SetRun(w.runs[run.Name])
}
