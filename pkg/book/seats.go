package book

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// seating is what pods hold: GPUs and more of their nodes, and money. It alone takes and gives these for good.
type seating struct {
	accounts *budget.Accounts
	args     *config.Args
	fleet    *topology.Fleet
	mail     *mailbox
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist

	held    map[types.UID]*holding // by pod
	leavers map[types.UID]*holding // those of held whose pods have been told to go
	leases  map[types.NamespacedName]*lease
	ofRun   map[types.UID]map[types.NamespacedName]*lease // the same by Run
	// current are the open Leases of pods that had others before, by pod.
	current map[types.UID]types.NamespacedName
	// waitedFor are those of held that gangs wait for.
	waitedFor  map[types.UID]*holding
	roles      map[rqv1.LeaseRole]int // GPUs of open Leases by role
	beside     beside
	shards     map[string]map[types.UID]int // the GPUs of shards by node and pod
	standby    map[string]int               // the GPUs by node of spares that stand by: nothing else runs on those
	idlers     idlers                       // those spares
	bystanders map[types.UID]bystander      // pods that hold no GPUs
	untaken    untaken
	unspent    func()                                         // sets aside again what a gang is planned without just now
	closed     func(name types.NamespacedName, run types.UID) // a Lease is not open any more
}

// hold changes the holding of a pod and keeps the fleet's counters in step.
func (s *seating) hold(pod types.UID, node string, gpus int, change func(h *holding)) {
	h := s.held[pod]
	if h == nil {
		h = &holding{}
	}
	before := *h
	change(h)
	if h.claimed() {
		if node != "" {
			h.node, h.gpus = node, gpus
		}
		h.beside = s.besideOf(pod, h)
		s.held[pod] = h
	} else {
		delete(s.held, pod)
		delete(s.leavers, pod)
		delete(s.waitedFor, pod)
		h.gpus = 0
		s.waiting.gone(h)
	}
	s.holdsBeside(pod, h)
	if before.writing != h.writing {
		s.roster.countLease(h.writing, 1)
		s.roster.countLease(before.writing, -1)
	}
	if before.node == h.node && before.gpus == h.gpus && before.beside == h.beside &&
		before.idles() == h.idles() && before.shard == h.shard {
		return
	}
	s.occupy(&before, pod, -before.gpus)
	s.occupy(h, pod, h.gpus)
	if before.claimed() && before.gpus <= h.gpus && before.beside != h.beside {
		s.waiting.eased(s.nodes.nodeFlavor(before.node)) // it may hold less now
	}
	if before.gpus > h.gpus && !h.shard {
		s.waiting.wakeRoom(s.nodes.nodeFlavor(before.node))
		if !before.spare && (before.bound || before.leased) {
			s.waiting.noteLeft(before.node)
		}
	}
}

// occupy counts GPUs that a holding takes from its node, or gives back where gpus is negative.
func (s *seating) occupy(h *holding, pod types.UID, gpus int) {
	node := h.node
	if gpus == 0 {
		return
	}
	if h.shard {
		if s.shards[node] == nil {
			s.shards[node] = map[types.UID]int{}
		}
		if s.shards[node][pod] += gpus; s.shards[node][pod] == 0 {
			delete(s.shards[node], pod)
		}
		if len(s.shards[node]) == 0 {
			delete(s.shards, node)
		}
		return
	}
	if h.idles() {
		s.standby[node] += gpus
		s.idlers.note(node, pod, gpus > 0)
		if s.standby[node] == 0 {
			delete(s.standby, node)
		}
	}
	s.fleet.Hold(node, gpus, h.beside)
}

// holdsBeside keeps what a pod holds beside its GPUs in step with its holding. A spare's is what its Run's ranks ask
// for.
func (s *seating) holdsBeside(pod types.UID, h *holding) {
	if g := s.roster.gangs[h.run]; g != nil && g.run != nil && h.claimed() && (h.spare || h.seated) {
		if asks := resourcesOf(h.beside); len(asks) > 0 {
			s.beside.set(pod, besideOf{node: h.node, run: keyOf(g.run), amounts: asks})
			return
		}
	}
	if woken := s.beside.drop(pod); len(woken) > 0 {
		s.mail.activate(woken...)
	}
}

// resourcesOf returns the resources among what is held beside GPUs.
func resourcesOf(beside *topology.Amounts) amounts {
	out := amounts{}
	for _, x := range beside.All() {
		if x.N > 0 && x.Resource != string(corev1.ResourcePods) && !topology.IsPort(x.Resource) {
			out[corev1.ResourceName(x.Resource)] = x.N
		}
	}
	return out
}

func (s *seating) requestsOf(pod *corev1.Pod) amounts {
	out := amounts{}
	for resource, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		n := amountOf(resource, quantity)
		if n > 0 && !s.args.GPUResource.Counts(resource) {
			out[resource] = n
		}
	}
	return out
}

// told notes until when a pod may stay that has been told to go: others may have another date now.
func (s *seating) told(h *holding, pod *corev1.Pod) {
	if at, told := rank.GoesBy(pod); told && !h.until.Equal(at) {
		h.until = at
		s.leavers[pod.UID] = h
		s.waiting.changes(s.nodes.nodeFlavor(h.node))
	}
}

// toldToGo returns until when a pod that has been told to go may stay, as the API has it; zero when it has not been
// told.
func (s *seating) toldToGo(pod types.UID) time.Time {
	if m := s.roster.members[pod]; m != nil {
		if at, told := rank.GoesBy(m.pod); told && m.stage != finished {
			return at
		}
		return time.Time{}
	}
	if h := s.held[pod]; h != nil {
		return h.until
	}
	return time.Time{}
}

// heldSince returns when a member's Lease was opened; when its pod was made, as long as it has none.
func (s *seating) heldSince(m *member) time.Time {
	if l := s.leases[s.leaseOf(m.pod)]; l != nil {
		return l.held
	}
	return m.pod.CreationTimestamp.Time
}

// heldBefore reports whether a member holds something since before an instant. A pod is known to be made in whole
// seconds; what a Run that waits has planned for its pods is of its next start.
func (s *seating) heldBefore(m *member, at time.Time) bool {
	planned := s.leases[s.leaseOf(m.pod)] == nil
	return s.heldSince(m).Before(at) && !(planned && !m.leaving && !m.gang.started())
}

// vacate gives up the room that is kept for replacements and that is not wanted any more.
func (s *seating) vacate(g *gang, unwanted func(*vacancy) bool) {
	defer s.waiting.file(g)
	var ranks []int
	g.vacant = slices.DeleteFunc(g.vacant, func(v vacancy) bool {
		if !unwanted(&v) {
			return false
		}
		if charge, ok := s.accounts.Void(charged(v.pod)); ok {
			s.waiting.wakeBudget(charge.Payer.Budget)
		}
		s.hold(v.pod, "", 0, func(h *holding) { h.vacant, h.asks = false, false })
		ranks = append(ranks, v.index)
		return true
	})
	for _, index := range ranks {
		s.setAside(g, index)
	}
}

// vacateAll gives up all of it.
func (s *seating) vacateAll(g *gang) { s.vacate(g, func(*vacancy) bool { return true }) }

// leaveSeat gives up what was kept for a pod that is gone, if its spare has not been told to go: the spare stands by
// again.
func (s *seating) leaveSeat(m *member) {
	s.vacate(m.gang, func(v *vacancy) bool {
		spare := s.roster.members[v.pod]
		return !m.part.Spare && v.seat() && v.index == m.part.Index && (v.asks || spare != nil && !spare.leaving)
	})
}

// missingOf lists the pods of a gang without a node, spares of a Run that has started apart. A cohort that it grows by
// comes when nothing else is missing. It refuses while the Lease of a lost rank, or of the spare whose place it takes,
// is open: that is closed first. The room that was kept for the missing is theirs now; that of spares stays kept until
// they have it.
func (s *seating) missingOf(g *gang) ([]plan.Missing, *plan.Refusal) {
	if refusal := s.stillLeased(g); refusal != nil {
		return nil, refusal
	}
	domains, refusal := s.nodes.domainsOf(g)
	if refusal != nil {
		return nil, refusal
	}
	s.awaitOwn(g, domains, g.leavesOut)
	s.notePayers(g)
	s.vacate(g, func(v *vacancy) bool { return !v.seat() && v.index != anyRank && !s.outlived(v) })
	var out []plan.Missing
	grows := g.grows()
	for m := range g.parts() {
		if m.stage == unplaced && (m.joins() && grows || !m.joins() && !m.extra()) && g.plansWith(m) {
			out = append(out, g.missingPod(m, domains))
		}
	}
	again := s.outlivedAgain(g)
	if slices.ContainsFunc(out, func(m plan.Missing) bool { return !m.Spare && again[m.Index] }) {
		return nil, g.notYet(outlivedTwice)
	}
	return out, nil
}

// await has a gang wait until what a pod holds is free.
func (s *seating) await(pod types.UID, g *gang) {
	h := s.held[pod]
	s.waitedFor[pod] = h
	if !slices.Contains(h.awaitedBy, g) {
		h.awaitedBy = append(h.awaitedBy, g)
		g.awaiting++
	}
}

// leaveOff has a gang not wait for anybody any more.
func (s *seating) leaveOff(g *gang) {
	if g.awaiting == 0 {
		return
	}
	g.awaiting = 0
	for pod, h := range s.waitedFor {
		h.awaitedBy = slices.DeleteFunc(h.awaitedBy, func(other *gang) bool { return other == g })
		if len(h.awaitedBy) == 0 {
			delete(s.waitedFor, pod)
		}
	}
}

// sit has ranks that take the places of spares hold what those held beside GPUs.
func (s *seating) sit(g *gang, seated []plan.Assignment) {
	for _, a := range seated {
		s.hold(g.active.members[a.Index].pod.UID, "", 0, func(h *holding) { h.seated = true })
	}
}

// advance moves a member to a later stage on a node, and keeps the counters in step.
func (s *seating) advance(m *member, to stage, node string, payer payer) {
	squad := m.gang.squad(m.part)
	squad.count(m, -1)
	m.stage, m.payer, m.node, m.unseen = to, payer, node, 0
	squad.count(m, +1)
	if to == reserved {
		m.came = s.waiting.plans
	}
	if to == bound && !m.part.Spare {
		m.gang.nodeWait.said = ""
	}
	if m.gang.accept(m, to) && m.gang.refusal != nil {
		s.waiting.wake(m.gang)
	}
	if to == unplaced {
		squad.lowest = min(squad.lowest, m.part.Index)
	}
	s.waiting.file(m.gang) // it lacks something else
}

// notePayers remembers who pays for the rooms of lost ranks, which are given up before it is known where the ranks go.
func (s *seating) notePayers(g *gang) {
	for i := range g.vacant {
		v := &g.vacant[i]
		charge, ok := s.accounts.Charge(charged(v.pod))
		if !ok || v.seat() || v.index == anyRank {
			continue
		}
		g.keptBy(v.index, charge)
	}
}

// chargeOf returns what a member's Lease takes from its payer from an instant on.
func (s *seating) chargeOf(m *member, now time.Time) budget.Charge {
	run := m.gang.run
	role := rank.RoleOf(&run.Spec, m.part)
	return budget.Charge{
		Payer: m.payer.key, Owner: run.Spec.Owner, Run: string(run.UID), Relation: m.payer.relation, Role: role,
		GPUs: m.gang.demand.GPUsPerPod, Rate: s.accounts.RateOf(role),
		Start: now, Until: m.gang.lastsUntil(now), Admitted: m.admittedBefore(now),
		Flavor: m.gang.demand.Flavor, Node: m.node,
	}
}

// payerOwner returns the owner of the Budget that pays for a member; the Run's own when the Budget is gone.
func (s *seating) payerOwner(m *member) rqv1.Owner {
	if payer := s.accounts.Budget(m.payer.key.Budget); payer != nil {
		return payer.Spec.Owner
	}
	return m.gang.demand.Owner
}

// roomFor returns how many GPUs of a node shards may hold: those that are nobody's and those under spares that stand
// by.
func (s *seating) roomFor(node string) int { return s.nodes.freeOn(node) + s.standby[node] }

// shardGPUs returns how many GPUs of a node shards hold.
func (s *seating) shardGPUs(node string) int {
	sum := 0
	for _, gpus := range s.shards[node] {
		sum += gpus
	}
	return sum
}

// besideShards returns other places for a gang that leave shards where they are, or those found where there are none:
// it had better not have them leave, but neither wait for anybody else's room nor be narrower for their sake.
func (s *seating) besideShards(flavor string, found []plan.Assignment,
	again func() ([]plan.Assignment, *plan.Refusal)) []plan.Assignment {
	if !slices.ContainsFunc(found, func(a plan.Assignment) bool { return len(s.shards[a.Node]) > 0 }) {
		return found
	}
	fork := plan.NewFork(s.fleet, s.accounts)
	defer fork.Revert()
	for node := range s.shards {
		if gpus := s.shardGPUs(node) - s.standby[node]; gpus > 0 && s.nodes.nodeFlavor(node) == flavor {
			fork.Take(node, gpus, nil)
		}
	}
	other, refusal := again()
	if refusal != nil {
		return found
	}
	return other
}

// heldBy returns what a Lease's pod holds.
func (s *seating) heldBy(l *lease) resolver.Holding {
	held := resolver.Holding{Node: l.node, GPUs: l.charge.GPUs}
	if h := s.held[l.pod]; h != nil {
		held.Beside = h.beside
	}
	return held
}
