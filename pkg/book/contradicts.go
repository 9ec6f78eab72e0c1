package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// contradicts says how a pod, as the API server has admitted it, may not be started: it asks for other GPUs than its
// Lease would say, or for more than GPUs; empty where it may. Admission may add containers or requests to what a Run
// says, in some of its pods only. A spare holds its GPUs and asks for none. Who has a Lease is let be: it pays. So is,
// for what nobody counts, a gang that has started: it was let in by other rules.
func (t *nodeTable) contradicts(m *member) string {
	g, asks := m.gang, t.podGPUs(m.pod)
	pays, see := g.full.GPUsPerPod, seeAdmission
	if m.stage >= leased {
		return ""
	}
	if g.run != nil && g.run.Spec.Theirs() {
		see = seeTheirs
	}
	if why := t.keepsAway(m); why != "" {
		return why
	}
	switch {
	case m.standIn || pays == 0:
		return ""
	case m.part.Spare && asks == 0:
		return ""
	case m.part.Spare:
		return fmt.Sprintf("pod %s was admitted with a request for %d GPUs, and a spare is to ask for none: %s",
			m.pod.Name, asks, see)
	case asks != pays:
		return fmt.Sprintf("pod %s was admitted with a request for %d GPUs, and the Run pays for %d a pod: %s",
			m.pod.Name, asks, pays, see)
	}
	other := t.asksBut(m.pod, g.resource)
	if !g.started() {
		other = cmp.Or(other, t.args.GPUResource.NotCounted(&m.pod.Spec))
	}
	if other != "" {
		return fmt.Sprintf("pod %s was admitted with a request for %s, and the Run pays for %s: %s", m.pod.Name, other,
			g.resource, see)
	}
	return ""
}

// anyContradicts says of a member of a gang that waits why it may not be started as it was admitted; empty where all
// may that there are. Nobody is cut for a gang that one of its pods keeps from starting.
func (t *nodeTable) anyContradicts(g *gang) string {
	if g.started() {
		return ""
	}
	for m := range g.all() {
		if why := t.contradicts(m); why != "" {
			return why
		}
	}
	return ""
}

// keepsAway says that a pod would keep pods of other namespaces from where it runs, which is no pod's to say; empty
// where it would not, and for who takes the place of one of a gang that was let in with the same rules.
func (t *nodeTable) keepsAway(m *member) (why string) {
	switch {
	case m.standIn || m.gang.run == nil:
	case !m.gang.run.Spec.Theirs():
		why = group.ReachesOthers(m.pod)
	case t.args.ForeignAntiAffinity != config.AntiAffinityAllow:
		why = group.ReachesOut(m.pod)
	}
	if why != "" && m.gang.started() && m.saysWhatRuns() {
		return ""
	}
	return why
}

// saysWhatRuns reports whether a pod of a gang keeps away the same pods as its others that have places, or as the one
// that its rank had last: those of a Run do, by its template, which never changes, and others are compared.
func (m *member) saysWhatRuns() bool {
	if !m.gang.run.Spec.Theirs() {
		return true
	}
	if was := m.gang.ran[m.part.Index]; was != nil && !m.part.Spare && group.SameApart(was.pod, m.pod) {
		return true
	}
	for other := range m.gang.all() {
		if other != m && other.holds() && group.SameApart(other.pod, m.pod) {
			return true
		}
	}
	return false
}

// noteRan remembers a rank's pod that others have made and that has a Lease: the next one of that rank may be taken to
// be like it.
func (g *gang) noteRan(m *member) {
	if m.part.Spare || !rank.Theirs(m.pod) {
		return
	}
	if g.ran == nil {
		g.ran = map[int]*member{}
	}
	g.ran[m.part.Index] = m
}

// seeAdmission is where to look for what a Run's own words do not say.
const seeAdmission = "look at gpusPerPod, at the template's containers and initContainers, and at what admission " +
	"adds to pods (webhooks, LimitRanges)"

// seeTheirs is where to look for it of pods that others make.
const seeTheirs = "look at the pod's containers and initContainers, and at what admission adds to pods (webhooks, " +
	"LimitRanges)"

// mismatch refuses a pod a place that contradicts its Run. A gang that waits gives all back, and its pods are made
// again; one that runs goes on without this pod.
func (x *starter) mismatch(m *member, why string, now time.Time) *plan.Refusal {
	g := m.gang
	if !g.started() && !g.over() && !g.opportunistic() {
		if !g.denied() || !g.denial.rests {
			x.turns.deny(g, Objection{Why: why}, now)
		}
		return g.refusal
	}
	refusal := plan.OtherResource(g.full, why)
	if !m.part.Spare && g.started() && !g.opportunistic() {
		x.waiting.refuse(g, refusal)
	}
	return refusal
}

// Sharers returns how many pods of the gang of a pod that waits would use a ResourceClaim which its spec names.
func (b *Book) Sharers(pod types.UID, claim string) int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	m := b.roster.members[pod]
	if m == nil || m.stage != unplaced || m.gang.run == nil {
		return 0
	}
	if !m.gang.run.Spec.Theirs() {
		return m.gang.full.Least().Pods()
	}
	n := 0
	for _, other := range m.gang.active.members {
		if other != nil && slices.ContainsFunc(other.pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			return c.ResourceClaimName != nil && *c.ResourceClaimName == claim
		}) {
			n++
		}
	}
	return n
}

// Contradict refuses a pod a place for what it asks for, which no node can give it.
func (b *Book) Contradict(pod types.UID, why string, now time.Time) *plan.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod]
	if m == nil {
		return nil
	}
	return b.starts.mismatch(m, why, now)
}
