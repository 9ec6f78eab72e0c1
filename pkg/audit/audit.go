package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Invariant names what is checked.
type Invariant string

// Invariants lists all that are checked, in the order in which they are reported.
var Invariants = []Invariant{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "R21"}

// Level tells what is wrong from what should only be known.
type Level string

// Values of Level.
const (
	// Violation: what always holds does not.
	Violation Level = "violation"
	// Information: it is as it may be, and somebody may want to know.
	Information Level = "information"
)

// Object names an API object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns KIND NAMESPACE/NAME.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Finding is one thing that is not as it should be, or that somebody may want to know.
type Finding struct {
	Invariant Invariant `json:"invariant"`
	Level     Level     `json:"level"`
	// Objects that it is about, the one that it was found on first.
	Objects []Object `json:"objects"`
	Message string   `json:"message"`
	Remedy  string   `json:"remedy"`
	// about tells findings on the same object apart.
	about string
}

// Key is the same for the same finding in every look.
func (f *Finding) Key() string {
	return strings.Join([]string{string(f.Invariant), string(f.Level), f.Objects[0].String(), f.about}, "|")
}

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
}

// Rules are what of the scheduler's configuration matters here.
type Rules struct {
	GPUResource string
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

// Look is what one look at a world has come to.
type Look struct {
	found map[string]Finding
	// closed are the ends of the Leases that are closed, and open what the others are charged, for the next look.
	closed map[types.UID]closing
	open   map[string]budget.Charge
	budgets
}

// Look checks a world.
func (r Rules) Look(w *World) *Look {
	s := newSight(r, w)
	for _, check := range []func(){
		s.nodes, s.pods, s.leases, s.groups, s.runs, s.closings, s.reservations, s.caps, s.hours,
	} {
		check()
	}
	l := &Look{found: s.found, open: map[string]budget.Charge{}, closed: map[types.UID]closing{}, budgets: s.counted()}
	for _, lease := range w.Leases {
		if lease.Status.Closed {
			l.closed[lease.UID] = closingOf(lease)
			continue
		}
		l.open[nameOf(lease)] = s.charges[lease]
	}
	return l
}

// Standing returns what stands in both of two looks, in order of invariants and objects. Of a settled world one look
// will do, for both.
func Standing(before, after *Look) []Finding {
	var out []Finding
	for key, f := range after.found {
		if _, both := before.found[key]; both {
			out = append(out, f)
		}
	}
	out = append(out, miscounted(before, after)...)
	out = append(out, rewritten(before, after)...)
	slices.SortFunc(out, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(Invariants, x.Invariant), slices.Index(Invariants, y.Invariant)),
			-strings.Compare(string(x.Level), string(y.Level)), strings.Compare(x.Key(), y.Key()))
	})
	return out
}

// Count returns the number of violations of each invariant, 0 included.
func Count(findings []Finding) map[Invariant]int {
	out := map[Invariant]int{}
	for _, i := range Invariants {
		out[i] = 0
	}
	for i := range findings {
		if findings[i].Level == Violation {
			out[findings[i].Invariant]++
		}
	}
	return out
}

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

func newSight(r Rules, w *World) *sight {
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

func newFinding(level Level, i Invariant, about string, objects []Object, format string, args ...any) Finding {
	f := Finding{Invariant: i, Level: level, Objects: objects, Message: fmt.Sprintf(format, args...), about: about}
	f.Remedy = remedies[i]
	if level == Information {
		f.Remedy = "Nothing, unless you did not expect it."
	}
	return f
}

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
