package book

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// gang is a Run with its pods.
type gang struct {
	run    *rqv1.Run // nil when only pods or Leases of it have been seen yet
	demand plan.Demand
	shape  *plan.Refusal // why the Run has no demand
	// members by index; nil where the pod does not exist. present counts those that do, and no member below lowest is
	// unplaced.
	members         []*member
	present, lowest int
	// leaving counts members that have been told to go and are not gone: the gang waits for their replacements.
	leaving int
	// vacant are pods of a running Run that are gone and whose room is kept for their replacements.
	vacant []types.UID
	// assigned counts members with a node, reserved those that have reached the barrier.
	assigned, reserved int
	// planned says that a plan has been made that the leader's gang has not followed yet.
	planned bool
	// committed says that the barrier is open: every member was reserved at once.
	committed bool
	// deadline is when a gang that is not committed gives its GPUs back.
	deadline time.Time
	// refusal is why the last plan failed; nil when none has or the gang is placed.
	refusal *plan.Refusal
	// excluded are the nodes that other scheduling rules turned down since the gang was last woken, and why.
	excluded map[string]string
	// woken says that the gang has been activated and not been planned since; tried is the epoch of its last plan.
	woken bool
	tried int64
}

// stage is how far a pod has come.
type stage int

const (
	unplaced stage = iota
	assigned       // has a node and a payer
	reserved       // waits at the barrier, or has passed it
	writing        // its Lease may or may not be in the ledger by now
	leased         // its Lease is open in the ledger
	bound          // runs on its node
	finished       // succeeded or failed
)

// member is one pod of a gang.
type member struct {
	gang  *gang
	pod   *corev1.Pod
	index int
	stage stage
	node  string
	payer payer
	// leaving says that the pod has been told to go.
	leaving bool
}

// payer is who pays for a pod, and what it is to the Run's owner.
type payer struct {
	key      budget.Key
	relation rqv1.Relation
}

// role returns the part that the member plays in its Run.
func (m *member) role() rqv1.LeaseRole { return rqv1.RoleActive }

// SetRun adds or replaces a Run. A Run that is edited may fit now, so it is woken.
func (b *Book) SetRun(run *rqv1.Run) {
	b.mu.Lock()
	defer b.unlock()
	g := b.gangOf(run.UID)
	edited := g.run == nil || g.run.Generation != run.Generation
	g.run = run
	b.runs[client(run)] = run.UID
	if phase := run.Status.Phase; phase != rqv1.RunRunning {
		b.vacate(g)
		if phase == rqv1.RunCompleted || phase == rqv1.RunFailed {
			b.waiting.remove(g)
			g.refusal = nil
			return
		}
	}
	if edited {
		b.shape(g)
	}
	if edited && (g.refusal != nil || g.complete()) {
		b.wake(g)
	}
}

// DeleteRun forgets a Run. Its pods and Leases go on counting until they are gone.
func (b *Book) DeleteRun(run *rqv1.Run) {
	b.mu.Lock()
	defer b.unlock()
	if b.runs[client(run)] == run.UID {
		delete(b.runs, client(run))
	}
	g := b.gangs[run.UID]
	if g == nil {
		return
	}
	b.unwind(g)
	b.vacate(g)
	b.waiting.remove(g)
	g.run, g.refusal = nil, nil
	b.forgetIfEmpty(run.UID, g)
}

func client(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (b *Book) gangOf(run types.UID) *gang {
	g := b.gangs[run]
	if g == nil {
		g = &gang{excluded: map[string]string{}}
		b.gangs[run] = g
	}
	return g
}

func (b *Book) forgetIfEmpty(run types.UID, g *gang) {
	if g.run == nil && g.present == 0 {
		delete(b.gangs, run)
	}
}

// shape works the gang's demand out. Pods that exist fix the size of a pod, whatever the nodes have become since.
func (b *Book) shape(g *gang) {
	if g.run == nil {
		return
	}
	gpus := 0
	if g.run.Spec.Template != nil {
		gpus = PodGPUs(&g.run.Spec.Template.Spec, b.args.GPUResource)
	}
	if i := slices.IndexFunc(g.members, func(m *member) bool { return m != nil }); i >= 0 {
		gpus = b.podGPUs(g.members[i].pod)
	}
	g.demand, g.shape = plan.DemandOf(&g.run.Spec, gpus, b.largestNode(g.run.Spec.Resources.GPUType))
	if all := b.gpusOfAll(g.demand.Flavor); g.shape == nil && g.present == 0 && all == 0 {
		g.shape = plan.UnknownType(g.demand)
	} else if g.shape == nil && g.present == 0 && g.demand.GPUs() > all {
		g.shape = plan.TooWide(g.demand, all) // before any of its pods is made, which may be a million
	}
	if g.shape != nil {
		g.refusal = g.shape
		b.waiting.add(g)
	} else if g.present == 0 {
		g.refusal = nil
		b.waiting.remove(g)
	}
}

// Demand returns the shape of a Run, or why it has none; false when the book has not seen the Run yet.
func (b *Book) Demand(run types.UID) (plan.Demand, *plan.Refusal, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.gangs[run]
	if g == nil || g.run == nil {
		return plan.Demand{}, nil, false
	}
	if g.shape != nil {
		b.shape(g)
	}
	return g.demand, g.shape, true
}

// Refusal returns why a Run does not start; nil when it has started, or has not been tried.
func (b *Book) Refusal(run types.UID) *plan.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.gangs[run]; g != nil {
		return g.refusal
	}
	return nil
}

// maxPods bounds the index of a pod: the API allows no Run more GPUs.
const maxPods = 1000000

// Membership returns the Run that a pod belongs to and the pod's index in it; false for a pod that is not a Run's. A pod
// belongs to a Run that controls it and that it carries the name of.
func Membership(pod *corev1.Pod) (run types.UID, index int, ok bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "Run" || owner.APIVersion != rqv1.GroupVersion.String() || owner.Name != pod.Labels[rqv1.LabelRun] {
		return "", 0, false
	}
	index, err := strconv.Atoi(pod.Labels[rqv1.LabelIndex])
	if err != nil || index < 0 || index >= maxPods || pod.Name != PodName(owner.Name, index) {
		return "", 0, false
	}
	return owner.UID, index, true
}

// PodName returns the name of a Run's pod: a rank keeps it for life.
func PodName(run string, index int) string { return run + "-" + strconv.Itoa(index) }

// SetMember adds or updates a pod of a Run.
func (b *Book) SetMember(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.unlock()
	uid, index, ok := Membership(pod)
	if !ok {
		return
	}
	g := b.gangOf(uid)
	m := b.members[pod.UID]
	added := m == nil
	if added {
		m = b.join(g, index, pod)
	}
	m.pod = pod
	if pod.DeletionTimestamp != nil && !m.leaving {
		m.leaving = true
		g.leaving++
	}
	if l := b.leases[leaseName(pod)]; l != nil && m.stage < leased {
		b.advance(m, leased, l.node, payerOf(l.charge))
	}
	switch {
	case terminal(pod):
		b.advance(m, finished, pod.Spec.NodeName, m.payer)
	case pod.Spec.NodeName != "" && m.stage < bound:
		b.advance(m, bound, pod.Spec.NodeName, m.payer)
	}
	if added && g.complete() {
		b.wake(g)
	}
}

// join makes a pod the member of its index, in place of the pod that had the index before.
func (b *Book) join(g *gang, index int, pod *corev1.Pod) *member {
	for len(g.members) <= index {
		g.members = append(g.members, nil)
	}
	if old := g.members[index]; old != nil {
		b.drop(old)
	}
	m := &member{gang: g, index: index, pod: pod}
	g.members[index] = m
	g.lowest = min(g.lowest, index)
	b.members[pod.UID] = m
	if g.present++; g.present == 1 {
		b.shape(g)
	}
	return m
}

// DeleteMember forgets a pod of a Run. If its gang was on its way to the barrier, the gang gives everything back: it is
// planned anew with the pod's replacement.
func (b *Book) DeleteMember(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod.UID]
	if m == nil {
		return
	}
	g := m.gang
	if m.stage == bound && g.run != nil && g.run.Status.Phase == rqv1.RunRunning {
		b.keepRoom(m)
	}
	b.drop(m)
	if !g.committed {
		b.unwind(g)
	}
	if run, _, ok := Membership(pod); ok {
		b.forgetIfEmpty(run, g)
	}
}

// drop takes a member out of its gang.
func (b *Book) drop(m *member) {
	b.release(m)
	delete(b.members, m.pod.UID)
	m.gang.members[m.index] = nil
	m.gang.present--
	if m.leaving {
		m.gang.leaving--
	}
	m.gang.woken = false
}

// advance moves a member to a later stage on a node, and keeps the gang's counters in step.
func (b *Book) advance(m *member, to stage, node string, payer payer) {
	b.count(m, -1)
	m.stage, m.payer, m.node = to, payer, node
	b.count(m, +1)
	if to == unplaced {
		m.gang.lowest = min(m.gang.lowest, m.index)
	}
}

func (b *Book) count(m *member, by int) {
	if m.stage >= assigned {
		m.gang.assigned += by
	}
	if m.stage >= reserved {
		m.gang.reserved += by
	}
}

// release takes a member's assignment back, if neither the ledger nor the node holds it. While its Lease is being written
// the GPUs and the charge stay taken: only the outcome of the write says whether they are.
func (b *Book) release(m *member) {
	name := leaseName(m.pod)
	if m.stage > unplaced && m.stage != writing && b.leases[name] == nil {
		b.accounts.Void(name.String())
		b.wakeBudget(m.payer.key.Budget)
		b.hold(m.pod.UID, "", 0, func(h *holding) { h.planned = false })
	}
	b.advance(m, unplaced, "", payer{})
}

// keepRoom keeps the room and the money of a running Run's lost pod for its replacement, once the pod's Lease is closed:
// otherwise whoever waits would take it first, and the Run would end for want of it.
func (b *Book) keepRoom(m *member) {
	b.hold(m.pod.UID, "", 0, func(h *holding) { h.vacant = true })
	m.gang.vacant = append(m.gang.vacant, m.pod.UID)
}

// vacate gives up the room that is kept for replacements.
func (b *Book) vacate(g *gang) {
	for _, pod := range g.vacant {
		if charge, ok := b.accounts.Void(vacancy(pod)); ok {
			b.wakeBudget(charge.Payer.Budget)
		}
		b.hold(pod, "", 0, func(h *holding) { h.vacant = false })
	}
	g.vacant = nil
}

func vacancy(pod types.UID) string { return "vacant/" + string(pod) }

// unwind takes back the assignments of every member that has no Lease yet. Those that wait at the barrier are rejected.
func (b *Book) unwind(g *gang) {
	g.committed = false
	for _, m := range g.members {
		if m == nil || (m.stage != assigned && m.stage != reserved) {
			continue
		}
		if m.stage == reserved {
			b.reject(m.pod.UID)
		}
		b.release(m)
	}
}

// complete reports whether every pod of the gang exists.
func (g *gang) complete() bool {
	return g.run != nil && g.shape == nil && g.present == g.demand.Pods() && len(g.members) == g.present && g.leaving == 0
}

// ready reports whether every member has reached the barrier.
func (g *gang) ready() bool { return g.complete() && g.reserved == g.present }

// leader returns the member that plans for the gang: the unplaced one of lowest index. It is nil when all are placed.
func (g *gang) leader() *member {
	for ; g.lowest < len(g.members); g.lowest++ {
		if m := g.members[g.lowest]; m != nil && m.stage == unplaced {
			return m
		}
	}
	return nil
}
