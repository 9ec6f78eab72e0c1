package book

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// A gang that waits has one pod, its leader's (R32). Once it is given its places the others are made: until then each
// place is held by a stand-in, a member whose pod has not been made and which is otherwise as the leader's.

// led reports whether a gang that is to start can be planned by its leader, whether or not its other pods exist. Pods
// that are leaving have their names.
func (g *gang) led() bool {
	return g.run != nil && g.shape == nil && !g.started() && !g.opportunistic() && !g.over() &&
		g.active.leaving == 0 && g.spares.leaving == 0 && g.active.first() != nil
}

// parts goes through the members that take part, as all does, with one for each pod of a gang that is to start and has
// not been made.
func (g *gang) parts() iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for _, spare := range [...]bool{false, true} {
			s := g.squad(rank.Part{Spare: spare})
			for i := range s.size {
				m := s.at(i)
				if m == nil && (g.started() || g.opportunistic()) {
					continue
				} else if m == nil {
					m = &member{gang: g, part: rank.Part{Index: i, Spare: spare}}
				}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// at returns the member of an index; nil where there is none.
func (s *squad) at(index int) *member {
	if index < len(s.members) {
		return s.members[index]
	}
	return nil
}

// musters reports whether a gang that is to start has its places, so that its pods are to be there: its leader has been
// accepted at its own, or it waits until others have left.
func (g *gang) musters() bool {
	if g.run == nil || g.started() || g.opportunistic() || !g.underWay() {
		return false
	}
	from := reserved
	if g.awaiting > 0 || g.activation != nil {
		from = assigned
	}
	has := func(m *member) bool { return m != nil && m.stage >= from && !m.leaving }
	return slices.ContainsFunc(g.active.members, has) || slices.ContainsFunc(g.spares.members, has)
}

// disbands reports whether the pods of a gang that waits are to go, all but its leader's: they have no places.
func (g *gang) disbands() bool {
	return g.waits() && !g.woken && !g.musters() && g.refusal.Reason != plan.NotYet && !g.futile.keeps(g.refusal)
}

// awaitsPods reports whether places of the gang are kept for pods that have not been made.
func (g *gang) awaitsPods() bool { return g.standIns > 0 }

// seated returns the member of a part, with a stand-in where its pod has not been made.
func (p *placement) seated(g *gang, part rank.Part) *member {
	s := g.squad(part)
	if m := s.at(part.Index); m != nil {
		return m
	}
	for len(s.members) <= part.Index {
		s.members = append(s.members, nil)
	}
	m := &member{gang: g, part: part, pod: g.standInFor(part), standIn: true, beside: g.full.Beside}
	s.members[part.Index] = m
	s.count(m, +1)
	s.present++
	p.roster.members[m.pod.UID] = m
	g.standIns++
	p.roster.classes.mustering[g] = true
	return m
}

// dismiss has a stand-in be gone that has lost its place.
func (p *placement) dismiss(m *member) {
	s := m.gang.squad(m.part)
	delete(p.roster.members, m.pod.UID)
	s.count(m, -1)
	s.members[m.part.Index] = nil
	s.present--
	p.fewerStandIns(m.gang)
	for n := len(s.members); n > 0 && s.members[n-1] == nil; n-- {
		s.members = s.members[:n-1]
	}
}

// relieve has a pod that has been made take the place of its stand-in, with all that is held there.
func (p *placement) relieve(m *member, pod *corev1.Pod) {
	was := m.pod
	charge, paid := p.accounts.Void(leaseName(was).String())
	delete(p.roster.members, was.UID)
	m.pod, m.standIn = pod, false
	p.roster.members[pod.UID] = m
	p.fewerStandIns(m.gang)
	p.seats.rename(was.UID, pod.UID)
	if paid {
		p.accounts.Open(leaseName(pod).String(), charge)
	}
}

func (p *placement) fewerStandIns(g *gang) {
	g.standIns--
	if g.standIns == 0 {
		delete(p.roster.classes.mustering, g)
	}
}

// came has a pod be scheduled that has found its place kept, and the Run looked at when it was the last one.
func (p *placement) came(m *member) {
	g := m.gang
	g.denial.moves = true
	if g.awaiting == 0 && g.activation == nil {
		p.mail.activate(m.pod)
	}
	if !g.awaitsPods() {
		g.denial, g.futile.refused = denial{}, 0
		p.mail.reconcile(keyOf(g.run), lane.Cut) // others may be told to go by now
	}
}

// lost has a gang be planned anew that is to start and has lost its places. What was decided for it is off, if nobody
// has been told.
func (v *activations) lost(g *gang) {
	if g.run == nil || g.started() || g.underWay() {
		return
	}
	if g.bereft() {
		v.letOff(g)
	}
	v.waiting.again(g)
}

// bereft reports whether it has been decided who is cut for a gang, nobody has been told of it, and the gang has lost
// the places that it was decided for.
func (g *gang) bereft() bool {
	return g.activation != nil && !g.activation.Failed && g.activatedAt().IsZero() && !g.underWay()
}

// dropBereft takes back what was decided for gangs that have lost their places, such as with their nodes.
func (v *activations) dropBereft() {
	var bereft []*gang
	for g := range v.cuts.decided {
		if g.bereft() {
			bereft = append(bereft, g)
		}
	}
	slices.SortFunc(bereft, byAge)
	for _, g := range bereft {
		v.lost(g)
	}
}

// rename has what a pod holds be another's.
func (s *seating) rename(was, is types.UID) {
	h := s.held[was]
	if h == nil {
		return
	}
	delete(s.held, was)
	s.held[is] = h
	if h.idles() {
		s.idlers.note(h.node, was, false)
		s.idlers.note(h.node, is, true)
	}
	s.beside.rename(was, is)
}

// rename has what a pod holds be another's.
func (s *beside) rename(was, is types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of, holds := s.pods[was]; holds {
		delete(s.pods, was)
		s.pods[is] = of
	}
}

// standInFor returns a pod as the API server would admit it for a part of a gang: ranks differ from the leader, which
// it has admitted, by name and number alone.
func (g *gang) standInFor(part rank.Part) *corev1.Pod {
	model := podOf(g.run)
	if i := slices.IndexFunc(g.active.members, func(m *member) bool { return m != nil && !m.standIn }); i >= 0 {
		model = g.active.members[i].pod
	}
	name := part.PodName(g.run.Name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.run.Namespace, Name: name,
		UID: types.UID(fmt.Sprintf("%s/%s", g.run.UID, name)), CreationTimestamp: model.CreationTimestamp,
		Labels: map[string]string{}}}
	if part.Spare {
		pod.Spec = corev1.PodSpec{SchedulerName: model.Spec.SchedulerName, Tolerations: model.Spec.Tolerations,
			NodeSelector: model.Spec.NodeSelector, Affinity: model.Spec.Affinity,
			Containers: []corev1.Container{{Name: "pause"}}}
	} else {
		maps.Copy(pod.Labels, model.Labels)
		pod.OwnerReferences, pod.Spec = model.OwnerReferences, model.Spec
	}
	maps.Copy(pod.Labels, map[string]string{
		rqv1.LabelRun: g.run.Name, rqv1.LabelRunUID: string(g.run.UID), rqv1.LabelIndex: strconv.Itoa(part.Index),
		rqv1.LabelGroupIndex: strconv.Itoa(g.demand.Group(part)),
		rqv1.LabelCohort:     cmp.Or(model.Labels[rqv1.LabelCohort], "0"),
		rqv1.LabelRole:       string(rank.RoleOf(&g.run.Spec, part)),
	})
	asItsOwn(&pod.Spec, model.Labels, pod.Labels)
	return pod
}
