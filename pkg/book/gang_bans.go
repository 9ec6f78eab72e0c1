package book

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// ban is the nodes that other scheduling rules have turned pods of one kind of a gang down from, and why: what one kind
// is refused for, such as a volume that it alone uses, does not bar others. alone is the pod for which it is, if it is
// for no other: one that is placed by itself is turned down for where the others are.
type ban struct {
	kind  variant
	alone types.UID
	nodes map[string]string
}

// turnings is what nodes have said that other scheduling rules have turn pods of a gang down, and why: which are to be
// left alone by all of its pods, which by those of a kind, and how many pods others take at most.
type turnings struct {
	excluded map[string]string
	bans     []*ban
	upTo     map[string]int
	why      map[string]string
}

// mostKinds is for how many kinds of pods of a gang it is told apart what nodes turn them down: each has to be turned
// down by a node that takes none.
const mostKinds = 8

// alike reports whether a pod is of a variant and uses the same volumes and devices: other rules treat them alike.
func (s *variant) alike(pod *corev1.Pod, beside *topology.Amounts) bool {
	return s.like(pod, beside) && slices.Equal(claimsOf(s.pod), claimsOf(pod))
}

// claimsOf names the volumes and devices that a pod shares with others that name them.
func claimsOf(pod *corev1.Pod) (out []string) {
	for i := range pod.Spec.Volumes {
		if c := pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			out = append(out, *c.ResourceClaimName)
		}
	}
	return out
}

// exclude has a node be left alone that has turned a member of a gang down: by all, by its kind alone where the gang's
// pods are of a few, or by it alone where it is placed by itself.
func (s *turnings) exclude(m *member, node, why string, few bool) {
	alone := types.UID("")
	if m != nil && m.belated() {
		alone = m.pod.UID
	} else if !few || m == nil || m.part.Spare {
		if s.excluded == nil {
			s.excluded = map[string]string{}
		}
		s.excluded[node] = why
		return
	}
	at := slices.IndexFunc(s.bans, func(b *ban) bool { return b.alone == alone && b.bars(m.pod, m.beside) })
	if at < 0 {
		at = len(s.bans)
		s.bans = append(s.bans, &ban{variant{pod: m.pod, beside: m.beside}, alone, map[string]string{}})
	}
	s.bans[at].nodes[node] = why
}

// heed has a plan go by how many of a gang's pods a node takes at most, which is to be left alone where that is below
// 0: by those of the kind that it has turned down, where they are of a few.
func (s *turnings) heed(t Turning, m *member, few bool) {
	if t.Most < 0 || m != nil && m.belated() {
		s.exclude(m, t.Node, t.Why, few)
		return
	}
	if s.upTo == nil {
		s.upTo = map[string]int{}
	}
	s.upTo[t.Node] = t.Most
	s.mention(t)
}

// mention tells of what a node is said to have turned down that no plan goes by.
func (s *turnings) mention(t Turning) {
	if s.why == nil {
		s.why = map[string]string{}
	}
	s.why[t.Node] = t.Why
}

// said returns the nodes that have turned any of its pods down, and why.
func (s *turnings) said() map[string]string {
	out := maps.Clone(s.why)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, s.turnedBy())
	return out
}

// turnsItsKind reports whether a node has taken no pod such as one that it has turned down: others of the gang that it
// took are no reason for it.
func (r *roster) turnsItsKind(asked *Check, turned []Turning, t Turning) bool {
	m := r.members[t.Pod]
	if t.Skewed || m == nil || m.part.Spare {
		return false
	}
	took := func(p Place) bool {
		if p.Node != t.Node {
			return false
		}
		other := r.members[p.Pod.UID]
		return other != nil && !other.part.Spare && (&variant{pod: m.pod, beside: m.beside}).alike(other.pod, other.beside) &&
			!slices.ContainsFunc(turned, func(t Turning) bool { return t.Pod == p.Pod.UID })
	}
	return !slices.ContainsFunc(asked.Places, took)
}

// isOfFewKinds reports whether the pods that others have made for a gang are of several kinds, and not of too many.
func (g *gang) isOfFewKinds() bool {
	if g.run == nil || !g.run.Spec.Theirs() {
		return false
	}
	var kinds []*variant
	for _, m := range g.active.members {
		if m == nil || m.standIn || m.stage >= finished ||
			slices.ContainsFunc(kinds, func(s *variant) bool { return s.alike(m.pod, m.beside) }) {
			continue
		}
		kinds = append(kinds, &variant{pod: m.pod, beside: m.beside})
		if len(kinds) > mostKinds {
			return false
		}
	}
	return len(kinds) > 1
}

// banOf returns the nodes that have turned pods like one down; nil where none has.
func (s *turnings) banOf(pod *corev1.Pod, beside *topology.Amounts) *ban {
	for _, b := range s.bans {
		if b.bars(pod, beside) {
			return b
		}
	}
	return nil
}

// rankOf returns the rank whose pod has a UID; nil where none has.
func (g *gang) rankOf(pod types.UID) *member {
	for _, m := range g.active.members {
		if m != nil && m.pod.UID == pod {
			return m
		}
	}
	return nil
}

// banned returns a test for the nodes that have turned pods like one down, whatever it asks for of them; nil where none
// has.
func (g *gang) banned(pod *corev1.Pod) (test func(node string) bool) {
	for _, b := range g.bans {
		if b.bars(pod, b.kind.beside) {
			test = plan.Either(test, b.has())
		}
	}
	return test
}

// dropBan forgets which nodes have turned a pod down that is gone, and it alone.
func (s *turnings) dropBan(pod types.UID) {
	s.bans = slices.DeleteFunc(s.bans, func(b *ban) bool { return b.alone == pod })
}

// bars reports whether a ban is for a pod.
func (b *ban) bars(pod *corev1.Pod, beside *topology.Amounts) bool {
	if b.alone != "" {
		return b.alone == pod.UID
	}
	return b.kind.alike(pod, beside)
}

// has is a test for the nodes of a ban; nil where there is none.
func (b *ban) has() func(node string) bool {
	if b == nil {
		return nil
	}
	nodes := maps.Clone(b.nodes) // a forecast goes by them while the book goes on
	return func(node string) bool { return nodes[node] != "" }
}

// turnedBy returns the nodes that have turned pods of a gang down, all or of one kind, and why.
func (s *turnings) turnedBy() map[string]string {
	if len(s.bans) == 0 {
		return s.excluded
	}
	out := map[string]string{}
	maps.Copy(out, s.excluded)
	for _, b := range s.bans {
		maps.Copy(out, b.nodes)
	}
	return out
}

// readmit has nodes that have turned pods of a gang down be tried again.
func (s *turnings) readmit(which func(node, why string) bool) {
	maps.DeleteFunc(s.excluded, which)
	for _, b := range s.bans {
		maps.DeleteFunc(b.nodes, which)
	}
	s.bans = slices.DeleteFunc(s.bans, func(b *ban) bool { return len(b.nodes) == 0 })
}

// readmitAll has all of them be tried again.
func (s *turnings) readmitAll() {
	clear(s.excluded)
	s.bans = nil
	s.unbound()
}

// unbound forgets how many pods nodes took at most: that was said of them beside what was there then.
func (s *turnings) unbound() { s.upTo, s.why = nil, nil }
