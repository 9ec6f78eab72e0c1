package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

const (
	gpuResource = "nvidia.com/gpu"
	tpuResource = "google.com/tpu"
)

// counted are the resources that are GPUs on some node of these tests.
var counted = config.Resources{gpuResource, tpuResource}

// world is what the API shows of one site: its nodes and every pod on them, its Runs, Budgets and Leases, and those
// that it showed once and that are settled.
type world struct {
	nodes   map[string]corev1.Node
	pods    []corev1.Pod
	runs    map[string]rqv1.Run
	leases  []rqv1.Lease
	budgets []rqv1.Budget
	// reservations are in the order of their names.
	reservations []rqv1.Reservation
	// bound are the pods of Runs that were ever bound, name by UID.
	bound map[string]string
}

// look reads the world of a site.
func (s *site) look(ctx context.Context) (*world, error) {
	var nodes corev1.NodeList
	var pods corev1.PodList
	var runs rqv1.RunList
	var leases rqv1.LeaseList
	var budgets rqv1.BudgetList
	var reservations rqv1.ReservationList
	for _, list := range []error{
		s.api.List(ctx, &nodes, client.MatchingLabels{"gpu.flavor": s.flavor}),
		s.api.List(ctx, &pods, client.InNamespace(s.namespace)),
		s.api.List(ctx, &runs, client.InNamespace(s.namespace)), s.api.List(ctx, &leases, client.InNamespace(s.namespace)),
		s.api.List(ctx, &budgets), s.api.List(ctx, &reservations, client.InNamespace(s.namespace)),
	} {
		if list != nil {
			return nil, list
		}
	}
	return s.world(nodes.Items, pods.Items, runs.Items, leases.Items, budgets.Items, reservations.Items), nil
}

// glance is the world of a site as the cluster's watches tell of it, which may be a moment old.
func (s *site) glance() *world {
	nodes := slices.DeleteFunc(values[corev1.Node](s.mirror.nodes.GetStore().List()),
		func(n corev1.Node) bool { return n.Labels["gpu.flavor"] != s.flavor })
	return s.world(nodes, mirrored[corev1.Pod](s.mirror.pods, s.namespace), mirrored[rqv1.Run](s.mirror.runs, s.namespace),
		mirrored[rqv1.Lease](s.mirror.leases, s.namespace), values[rqv1.Budget](s.mirror.budgets.GetStore().List()),
		mirrored[rqv1.Reservation](s.mirror.reservations, s.namespace))
}

// world is that of some objects, with what others have on its nodes and what it showed once.
func (s *site) world(nodes []corev1.Node, pods []corev1.Pod, runs []rqv1.Run, leases []rqv1.Lease,
	budgets []rqv1.Budget, reservations []rqv1.Reservation) *world {
	w := &world{nodes: map[string]corev1.Node{}, pods: pods, runs: map[string]rqv1.Run{}, leases: asPaid(leases),
		reservations: slices.SortedFunc(slices.Values(reservations),
			func(a, b rqv1.Reservation) int { return strings.Compare(a.Name, b.Name) }),
		bound: map[string]string{}}
	for _, node := range nodes {
		w.nodes[node.Name] = node
	}
	for _, o := range s.mirror.pods.GetStore().List() {
		pod := o.(*corev1.Pod)
		if _, here := w.nodes[pod.Spec.NodeName]; here && pod.Namespace != s.namespace {
			w.pods = append(w.pods, *pod)
		}
	}
	for _, run := range runs {
		w.runs[run.Name] = run
	}
	w.budgets = slices.DeleteFunc(budgets, func(b rqv1.Budget) bool { return !s.has(b.Spec.Owner) })
	w.recall(s)
	return w
}

// asPaid returns Leases with one open for each pod: while two exchange payers each may have two for a moment.
func asPaid(leases []rqv1.Lease) []rqv1.Lease {
	read := make([]*rqv1.Lease, len(leases))
	for i := range leases {
		read[i] = &leases[i]
	}
	out := make([]rqv1.Lease, 0, len(leases))
	for _, lease := range rank.AsPaid(read) {
		out = append(out, *lease)
	}
	return out
}

// recall adds what the API showed once: settled Leases, Reservations that were kept for long enough, and who was bound.
func (w *world) recall(s *site) {
	there := map[string]bool{}
	for i := range w.leases {
		there[w.leases[i].Name] = true
	}
	for i := range w.reservations {
		there[string(w.reservations[i].UID)] = true
	}
	s.ledger.mutex.Lock()
	defer s.ledger.mutex.Unlock()
	for name, lease := range s.ledger.leases[s.namespace] {
		if lease.Status.Closed && !there[name] { // it is settled, and its object gone
			w.leases = append(w.leases, *lease)
		}
	}
	for uid, r := range s.ledger.reservations[s.namespace] {
		if r.Ended() && !there[string(uid)] { // it was kept for as long as it is to be
			w.reservations = append(w.reservations, *r)
		}
	}
	for uid, name := range s.ledger.bound[s.namespace] {
		w.bound[uid] = name
	}
}

// broken lists every invariant of the design that does not hold, in a settled world: one in which nothing is under way.
// Beside what an audit of the objects shows, it knows what there was before, and what must be over by now.
func (w *world) broken() []string {
	var out []string
	for _, check := range []func() []string{
		func() []string { return w.audited() }, w.overcommittedOnce, w.unpaid, w.incomplete, w.overdrawn, w.misreserved,
		w.hurt, w.feuds,
	} {
		out = append(out, check()...)
	}
	slices.Sort(out)
	return out
}

// audited lists what an audit of the API objects finds wrong, given that nothing is under way: all of it, or some
// invariants.
func (w *world) audited(only ...audit.Invariant) []string {
	args, err := config.Parse(nil)
	if err != nil {
		return []string{err.Error()}
	}
	args.GPUResource = counted
	rules := audit.RulesOf(args)
	rules.Settled = true
	seen := &audit.World{At: time.Now()}
	for _, node := range w.nodes {
		seen.Nodes = append(seen.Nodes, &node)
	}
	for _, run := range w.runs {
		seen.Runs = append(seen.Runs, &run)
	}
	seen.Pods, seen.Leases = pointers(w.pods), pointers(w.leases)
	seen.Budgets, seen.Reservations = pointers(w.budgets), pointers(w.reservations)
	look := rules.Look(seen)
	var out []string
	for _, f := range audit.Standing(look, look) {
		if f.Level == audit.Violation && (len(only) == 0 || slices.Contains(only, f.Invariant)) {
			out = append(out, fmt.Sprintf("%s: %s", f.Invariant, f.Message))
		}
	}
	return out
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// overcommittedOnce replays the ledger and finds nodes that held more than they have at any instant (I1): for all that
// is not opportunistic, and for all that runs, which spares do not.
func (w *world) overcommittedOnce() []string {
	if out := w.replay(rqv1.RoleBorrowed); len(out) > 0 {
		return out
	}
	return w.replay(rqv1.RoleSpare)
}

// replay finds nodes that held more than they have at any instant, Leases of one role apart.
func (w *world) replay(apart rqv1.LeaseRole) []string {
	type change struct {
		at   time.Time
		gpus int64
	}
	changes := map[string][]change{}
	for _, lease := range w.leases {
		for _, held := range lease.Spec.Slice.Nodes {
			if lease.Spec.Slice.Role == apart {
				continue
			}
			changes[held.Name] = append(changes[held.Name], change{lease.Spec.Start.Time, int64(held.GPUs)})
			if lease.Status.Ended != nil {
				changes[held.Name] = append(changes[held.Name], change{lease.Status.Ended.Time, -int64(held.GPUs)})
			}
		}
	}
	var out []string
	for name, node := range w.nodes {
		room, held := int64(counted.Sum(node.Status.Allocatable)), int64(0)
		slices.SortFunc(changes[name], func(x, y change) int {
			return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.gpus, y.gpus)) // what ends at an instant is free at it
		})
		for _, change := range changes[name] {
			if held += change.gpus; held > room {
				out = append(out, fmt.Sprintf("I1: node %s has %d GPUs and %d were leased at %s:%s",
					name, room, held, change.at.Format(time.StampMicro), w.heldAt(name, change.at)))
				break
			}
		}
	}
	return out
}

// heldAt lists the Leases of a node that were open at an instant.
func (w *world) heldAt(node string, at time.Time) string {
	var out strings.Builder
	for _, lease := range w.leases {
		opened := !lease.Spec.Start.After(at)
		if lease.Node() == node && opened && (lease.Status.Ended == nil || lease.Status.Ended.After(at)) {
			fmt.Fprintf(&out, " %s of %d from %s", lease.Name, lease.Spec.Slice.Nodes[0].GPUs,
				lease.Spec.Start.Format(time.StampMicro))
		}
	}
	return out.String()
}

// unpaid finds pods that were ever bound and have not exactly one Lease in all (I2), apart from those by which somebody
// else pays from where another Lease ends.
func (w *world) unpaid() []string {
	var out []string
	all := map[string]int{}
	for _, lease := range w.leases {
		if lease.Spec.Repaid == nil {
			all[lease.Labels[rqv1.LabelPodUID]]++
		}
	}
	for uid, name := range w.bound {
		if all[uid] != 1 {
			out = append(out, fmt.Sprintf("I2: pod %s was bound and has %d Leases", name, all[uid]))
		}
	}
	return out
}
