package book

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// variant is pods of a gang that are alike in which nodes they may use, and in what they ask for of these beside GPUs.
// Those that a Run makes all are; those that others make may not be, such as Jobs of a JobSet on two node pools.
type variant struct {
	pod    *corev1.Pod
	beside *topology.Amounts
	// ban is the nodes that have turned them down, and cuts those that have turned down a decision to cut; nil for none.
	ban, cuts *ban
}

// like reports whether a pod is of a variant.
func (s *variant) like(pod *corev1.Pod, beside *topology.Amounts) bool {
	p, q := &s.pod.Spec, &pod.Spec
	return s.beside == beside && maps.Equal(p.NodeSelector, q.NodeSelector) &&
		equality.Semantic.DeepEqual(nodeAffinity(p), nodeAffinity(q)) &&
		slices.EqualFunc(p.Tolerations, q.Tolerations, func(x, y corev1.Toleration) bool { return x.MatchToleration(&y) })
}

func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// variants returns the variants of the pods that others have made for a gang; nil where all are of one.
func (g *gang) variants() []*variant {
	if g.run == nil || !g.run.Spec.Theirs() {
		return nil
	}
	var out []*variant
	for _, m := range g.active.members {
		if m != nil && !m.standIn && m.stage < finished {
			out, _ = g.variantOf(out, m.pod, m.beside)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// variantOf returns some variants of a gang with that of a pod among them. Pods of a kind that nodes have turned down
// are of one of their own.
func (g *gang) variantOf(variants []*variant, pod *corev1.Pod, beside *topology.Amounts) ([]*variant, *variant) {
	ban, cuts := g.banOf(pod, beside), g.check.cuts.banOf(pod, beside)
	for _, s := range variants {
		if s.ban == ban && s.cuts == cuts && s.like(pod, beside) {
			return variants, s
		}
	}
	s := &variant{pod: pod, beside: beside, ban: ban, cuts: cuts}
	return append(variants, s), s
}

// byKind has missing pods of a gang say of what kind they are, where these differ; of a decision to cut with what nodes
// have said of such, and to which part of the nodes each is bound so that they are spread. One that has not been made
// is taken for such as the others of its group are, and a spare for such as its group's first rank is.
func (t *nodeTable) byKind(g *gang, missing []plan.Missing, cuts bool) []plan.Missing {
	l := g.check.laidFor(cuts)
	if g.variants() == nil && (l == nil || l.parts == nil) {
		return missing
	}
	type bound struct {
		*variant
		part  string
		spare bool
	}
	out, kinds := slices.Clone(missing), map[bound]*plan.Kind{}
	var variants []*variant
	for i, part := range out {
		index := part.Index
		if part.Spare {
			index = g.demand.Group(part.Part) * g.demand.PodsPerGroup
		}
		pod, beside := g.modelOf(rank.Part{Index: index}), g.demand.Beside
		if m := g.rankAt(index); m != nil {
			pod, beside = m.pod, m.beside
		}
		var s *variant
		variants, s = g.variantOf(variants, pod, beside)
		of := bound{variant: s}
		if l != nil && l.parts != nil {
			of.spare = part.Spare
			if len(SpreadKeys(pod)) > 0 && !part.Spare {
				of.part = l.parts[l.on[part.Part]]
			}
		}
		if kinds[of] == nil {
			kinds[of] = t.kindOf(g, s, l.outside(of.part), cuts)
		}
		out[i].Kind = kinds[of]
	}
	return out
}

// kindOf returns pods of a variant of a gang as a plan has them, which are not to be on some nodes.
func (t *nodeTable) kindOf(g *gang, s *variant, outside func(node string) bool, cuts bool) *plan.Kind {
	barred := either(either(t.barred(g.full.Flavor, s.pod), s.ban.has()), outside)
	if cuts {
		barred = either(barred, s.cuts.has())
	}
	k := &plan.Kind{Pod: s.pod.Name, Beside: s.beside, Barred: barred, Domains: map[string]bool{}}
	for node := range t.ofFlavor[g.full.Flavor] {
		if barred == nil || !barred(node) {
			k.Nodes = append(k.Nodes, node)
			k.Domains[t.fleet.DomainOf(node)] = true
		}
	}
	return k
}

// asksBeyond reports whether a pod of a gang, or another that others have made for it, uses scheduling rules that a
// plan does not know.
func (g *gang) asksBeyond(pod *corev1.Pod) bool {
	return asksBeyond(pod) || g.run.Spec.Theirs() && slices.ContainsFunc(g.active.members, func(m *member) bool {
		return m != nil && asksBeyond(m.pod)
	})
}

// barredToAny returns a test for the nodes that one pod of a gang at least may not use by what they and it say:
// wherever else the gang is, all of its pods could be. It returns nil when there is none.
func (t *nodeTable) barredToAny(g *gang, pod *corev1.Pod) func(node string) bool {
	barred := t.barred(g.run.Spec.Resources.GPUType, pod)
	for _, s := range g.variants() {
		barred = either(barred, t.barred(g.run.Spec.Resources.GPUType, s.pod))
	}
	return barred
}

// barredToAll returns a test for the nodes that no pod of a gang may use by what they and it say. It returns nil when
// there is none.
func (t *nodeTable) barredToAll(g *gang, pod *corev1.Pod) func(node string) bool {
	variants := g.variants()
	if variants == nil {
		return t.barred(g.run.Spec.Resources.GPUType, pod)
	}
	var each []func(string) bool
	for _, s := range variants {
		barred := t.barred(g.run.Spec.Resources.GPUType, s.pod)
		if barred == nil {
			return nil
		}
		each = append(each, barred)
	}
	return func(node string) bool {
		return !slices.ContainsFunc(each, func(barred func(string) bool) bool { return !barred(node) })
	}
}

// either returns a test for what one of two tests holds for, of which each may be nil.
func either(a, b func(node string) bool) func(node string) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(node string) bool { return a(node) || b(node) }
}
