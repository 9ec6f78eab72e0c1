package book_test

import (
	"fmt"
	"maps"
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
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

const (
	flavor       = "H100-80GB"
	gpusPerNode  = 8
	gangDeadline = time.Minute

	reservationLead  = 2 * time.Minute
	longestGrace     = 90 * time.Second
	activationShield = 3 * time.Minute
)

// world is a cluster in memory in which chance says what happens. The book under test learns of the objects only by the
// events that the cluster delivers.
type world struct {
	*sim.Cluster
	t *rapid.T
	// activation is the Reservation that is activating in a world without others; nil when none is.
	activation *rqv1.Reservation
	crashes    int
	tookOver   time.Time // when the process began that decides, if it is not the first
	brakes
	storm *storm // nil in a world without Reservations
	controllers
	others
	unedited map[string]int64   // the generations in which Budgets were seen first
	classes  map[string]int32   // PriorityClasses
	sentAway map[types.UID]bool // the shards that have been told to leave for maintenance
	// creditors are those who come before the Run of the pod that is in its scheduling cycle.
	creditors []types.UID
	// replays has each decision be made again.
	replays bool
	// sizes are the GPUs of nodes that have other than 8, by name.
	sizes map[string]int
}

func newWorld(t *rapid.T) *world {
	args, err := config.Parse(
		[]byte(fmt.Sprintf("{nodeLossConditions: [Broken], maxGracePeriod: %s, gangDeadline: %s, reservationLead: %s, "+
			"activationShield: %s, windowDelay: 1s, noticePeriod: %s}",
			longestGrace, gangDeadline, reservationLead, activationShield, noticePeriod)))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, classes: map[string]int32{"low": 10, "high": 1000}, sentAway: map[types.UID]bool{}}
	w.controllers = controllers{less: map[slot]bool{}, done: map[slot]bool{}, empty: map[types.UID]time.Time{},
		wants: map[types.UID]int{}, next: map[types.UID]int{}}
	w.Cluster = sim.New(sim.Options{
		Args: args, Rules: rules, Begin: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), AtOnce: true,
		Witness: sim.Witness{Violated: t.Fatalf, Began: w.boots, Decided: w.decided, Rejected: w.rejected, Placed: w.placed},
	})
	return w
}

// boots tells a process that starts how the brakes stand, and of what is activating.
func (w *world) boots(b *book.Book) []func() {
	w.engage(b)
	for name, value := range w.classes {
		b.SetPriorityClass(name, value)
	}
	if w.activation == nil {
		return nil
	}
	return []func(){func() { b.SetReservation(w.activation) }}
}

// decided makes a decision again.
func (w *world) decided(o lifecycle.Observed, d lifecycle.Decision) {
	w.checkBound(o, d)
	w.checkMoves(o, d)
	for i := range o.Cuts {
		if c := &o.Cuts[i]; w.storm != nil && c.ForRank && c.At.After(w.storm.cutAt[c.UID]) {
			w.storm.cutAt[c.UID] = c.At
		}
	}
	if w.replays {
		w.replayed(o, d)
	}
}

func (w *world) placed(pod *corev1.Pod, node string) {
	run, _ := rank.RunOf(pod)
	robbed, owed := w.Book.Robbed(run, w.creditors, w.Now)
	if len(robbed) > 0 {
		story := ""
		if w.storm != nil {
			story = w.storm.story()
		}
		w.t.Fatalf("R18: %v\n%s", robbed, story)
	}
	if owed && w.storm != nil {
		w.storm.tally["started beside what is owed"]++
	}
	if pod.Labels[rqv1.LabelCohort] != "0" {
		w.checkIntended(pod, node)
	}
}

// shuffle puts events in any order.
func (w *world) shuffle(events []func()) []func() {
	return rapid.Permutation(events).Draw(w.t, "order of events")
}

// crash loses everything that only the process knew.
func (w *world) crash() {
	w.crashes, w.tookOver = w.crashes+1, w.Now
	w.Crash(w.shuffle)
}

// reconcile does what the Run controller does, which may die.
func (w *world) reconcile(name string) {
	do := func() { _ = w.Reconcile(name) } // the next pass finds out whether it failed for good
	if w.storm != nil {
		do() // whoever has it do so looks after its death
	} else if w.Step(do) {
		w.crash()
	}
}

// cycle is one scheduling cycle of a pod.
func (w *world) cycle(uid types.UID) {
	if pod := w.Pods[uid]; pod != nil {
		run, _ := rank.RunOf(pod)
		w.creditors = w.Book.Creditors(run)
	}
	if w.Cycle(uid); w.storm != nil {
		w.storm.judge()
	}
}

// sizeOf returns how many GPUs a node has.
func (w *world) sizeOf(node string) int {
	if size, odd := w.sizes[node]; odd {
		return size
	}
	return gpusPerNode
}

// heldOn returns how many of a node's GPUs count as held.
func (w *world) heldOn(node string) int64 { return w.Book.Fullness(node, int64(w.sizeOf(node))) }

// nodesAny makes some nodes in domains of two, in half of the worlds of several sizes.
func (w *world) nodesAny(t *rapid.T) {
	w.sizes = map[string]int{}
	mixed := rapid.Bool().Draw(t, "nodes of several sizes")
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		if mixed {
			w.sizes[name] = rapid.SampledFrom([]int{8, 8, 4, 2, 1}).Draw(t, "GPUs of "+name)
		}
		w.addNode(name, fmt.Sprintf("d%d", i/2))
	}
}

func (w *world) addNode(name, domain string) {
	has := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(w.sizeOf(name)), resource.DecimalSI),
		"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi")}
	w.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
			"region": "r", "cluster": "c", "fabric.domain": domain, "gpu.flavor": flavor,
			"pool": poolOf(name),
		}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: maps.Clone(has)},
	})
	w.Revive(name)
}

func (w *world) setBudget(name string, owner rqv1.Owner, gpus int) {
	if b := w.Budgets[name]; b != nil {
		w.edited(b)
	}
	generation := int64(w.NextUID)
	w.NextUID++
	w.SetBudget(&rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: generation},
		Spec: rqv1.BudgetSpec{Owner: owner,
			Envelopes: []rqv1.Envelope{{Name: "e", Flavor: flavor, Concurrency: int32(gpus)}}},
	})
}

func (w *world) submit(name string, owner rqv1.Owner, groups, podsPerGroup, gpusPerPod int) {
	w.submitWithSpares(name, owner, groups, podsPerGroup, gpusPerPod, 0)
}

// elastic lets a Run start with fewer pods, down to least, by steps.
func elastic(least, step int) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		size := *s.Resources.GPUsPerPod
		s.Malleable = &rqv1.RunMalleable{MinTotalGPUs: int32(least) * size, MaxTotalGPUs: s.Resources.TotalGPUs,
			StepGPUs: int32(step) * size}
	}
}

// ungrouped lets the pods of a Run lie anywhere.
func ungrouped(s *rqv1.RunSpec) { s.Locality = nil }

// expiring has a Run deleted so many seconds after its end.
func expiring(seconds int32) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) { s.TTLSecondsAfterFinished = &seconds }
}

// submitWithSpares submits a Run with so many spare pods in each group, and with changes.
func (w *world) submitWithSpares(name string, owner rqv1.Owner, groups, podsPerGroup, gpusPerPod, spares int,
	changes ...func(*rqv1.RunSpec)) {
	group, total, size := int32(podsPerGroup*gpusPerPod), int32(groups*podsPerGroup*gpusPerPod), int32(gpusPerPod)
	spareGPUs := int32(spares * gpusPerPod)
	run := &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: w.UID(), Generation: 1,
			CreationTimestamp: metav1.NewTime(w.Now.Truncate(time.Second))},
		Spec: rqv1.RunSpec{
			Owner: owner, Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: total, GPUsPerPod: &size},
			Locality: &rqv1.RunLocality{GroupGPUs: &group}, SparesPerGroup: &spareGPUs,
		},
		Status: rqv1.RunStatus{Phase: rqv1.RunPending, Message: lifecycle.Waiting}, // the API's default
	}
	for _, change := range changes {
		change(&run.Spec)
	}
	w.SetRun(run)
}

// rules are those of the worlds' configuration that decisions go by.
var rules = lifecycle.Rules{GangDeadline: gangDeadline, NoticePeriod: noticePeriod, OpportunisticGrace: time.Second,
	MaxGracePeriod: longestGrace, PauseImage: "pause"}
