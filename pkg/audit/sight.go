package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// World is what was read. GPU leases are to be read before the records of settled ones, since a lease that is in a
// record may be deleted at any time.
type World struct {
	At    time.Time
	Nodes []*corev1.Node
	// Pods are all that are bound, and those of Runs.
	Pods         []*corev1.Pod
	Runs         []*rqv1.Run
	Budgets      []*rqv1.Budget
	Reservations []*rqv1.Reservation
	// Leases are the open ones, and all when Whole is set; Records are what settled ones have spent.
	Leases  []*rqv1.Lease
	Records []budget.Record
	Whole   bool
	// Going are the namespaces that are being deleted; nil where that is not known.
	Going map[string]bool
}

// Rules are what of the scheduler's configuration matters here.
type Rules struct {
	GPUResource config.Resources
	// Domain are the label keys that tell the domain which a group may not leave.
	Domain                  []string
	GangDeadline, Retention time.Duration
	// MaxGrace is the longest that a pod of a Run takes to end.
	MaxGrace time.Duration
	Rates    budget.Rates
	// Settled says that nothing is under way, so that nothing is excused by it.
	Settled bool
}

// RulesOf returns the rules of a configuration.
func RulesOf(args *config.Args) Rules {
	return Rules{GPUResource: args.GPUResource,
		Domain:       args.TopologyLevels[:slices.Index(args.TopologyLevels, args.FabricLevel)+1],
		GangDeadline: args.GangDeadline.Duration, MaxGrace: args.MaxGracePeriod.Duration,
		Retention: args.LedgerRetention.Duration, Rates: args.Rates()}
}

// writing is how long it may take until the scheduler knows that a GPU lease that it writes is written.
const writing = 10 * time.Second

// sight is a world sorted for the checks.
type sight struct {
	Rules
	*World
	found     map[string]Finding
	nodesBy   map[string]*corev1.Node
	podsBy    map[types.UID]*corev1.Pod
	runsBy    map[types.UID]*rqv1.Run
	runLeases map[types.UID][]*rqv1.Lease // open ones
	podLeases map[types.UID][]*rqv1.Lease // open ones
	ended     map[types.UID]*rqv1.Lease   // a closed one, by pod
	runPods   map[types.UID][]*corev1.Pod
	charges   map[*rqv1.Lease]budget.Charge // of open ones
}

func newSight(r Rules, read *World) *sight {
	paid := *read
	paid.Leases = rank.AsPaid(read.Leases) // of a pod that somebody else pays for two may be open for a moment
	w := &paid
	s := &sight{Rules: r, World: w, found: map[string]Finding{}, nodesBy: map[string]*corev1.Node{},
		podsBy: map[types.UID]*corev1.Pod{},
		runsBy: map[types.UID]*rqv1.Run{}, runLeases: map[types.UID][]*rqv1.Lease{}, podLeases: map[types.UID][]*rqv1.Lease{},
		ended: map[types.UID]*rqv1.Lease{}, runPods: map[types.UID][]*corev1.Pod{}, charges: map[*rqv1.Lease]budget.Charge{}}
	for _, node := range w.Nodes {
		s.nodesBy[node.Name] = node
	}
	byName := map[types.NamespacedName]*rqv1.Run{}
	for _, run := range w.Runs {
		s.runsBy[run.UID] = run
		byName[types.NamespacedName{Namespace: run.Namespace, Name: run.Name}] = run
	}
	for _, pod := range w.Pods {
		s.podsBy[pod.UID] = pod
		run := byName[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[rqv1.LabelRun]}]
		if run != nil && ownedBy(pod, run) {
			s.runPods[run.UID] = append(s.runPods[run.UID], pod)
		}
	}
	for _, lease := range w.Leases {
		pod := lease.PodUID()
		if lease.Status.Closed {
			s.ended[pod] = lease
			continue
		}
		s.podLeases[pod] = append(s.podLeases[pod], lease)
		s.runLeases[lease.Spec.RunRef.UID] = append(s.runLeases[lease.Spec.RunRef.UID], lease)
		s.charges[lease] = chargeOf(lease)
	}
	return s
}

// find notes a violation.
func (s *sight) find(i Invariant, about string, objects []Object, format string, args ...any) {
	s.note(Violation, i, about, objects, format, args...)
}

func (s *sight) note(level Level, i Invariant, about string, objects []Object, format string, args ...any) {
	f := newFinding(level, i, about, objects, format, args...)
	s.found[f.Key()] = f
}

// gpus returns the GPUs that a pod asks for.
func (s *sight) gpus(pod *corev1.Pod) int { return rank.PodGPUs(&pod.Spec, s.GPUResource...) }

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
