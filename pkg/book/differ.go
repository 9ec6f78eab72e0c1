package book

import (
	"cmp"
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
	says   string // of nodes
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

// variants returns the variants of the pods that others have made for a gang; nil where all are of one that its demand
// stands for, and not for one that has ended.
func (g *gang) variants() []*variant {
	if g.run == nil || !g.run.Spec.Theirs() {
		return nil
	}
	var out variants
	for _, m := range g.active.members {
		if m != nil && !m.standIn && m.stage < finished {
			out.of(g, m.pod, m.says(), m.beside)
		}
	}
	if len(out.all) == 0 || len(out.all) == 1 && out.all[0].beside == g.demand.Beside {
		return nil
	}
	return out.all
}

// variants are the variants of pods, in the order in which they were met.
type variants struct {
	all   []*variant
	known map[variant]*variant
}

// of returns the variant of a pod, which is one of them from then on. Pods of a kind that nodes have turned down are of
// one of their own.
func (v *variants) of(g *gang, pod *corev1.Pod, says string, beside *topology.Amounts) *variant {
	key := variant{says: says, beside: beside, ban: g.banOf(pod, beside), cuts: g.check.cuts.banOf(pod, beside)}
	s := v.known[key]
	if s == nil {
		one := key
		one.pod, s = pod, &one
		if v.known == nil {
			v.known = map[variant]*variant{}
		}
		v.known[key], v.all = s, append(v.all, s)
	}
	return s
}

// ofPart returns the variant that a part of a gang is of: one whose pod has not been made is taken for such as the
// others of its group are, and a spare for such as its group's first rank is.
func (v *variants) ofPart(g *gang, part rank.Part) *variant {
	m := cmp.Or(g.rankAt(g.indexOf(part)), g.standsFor(part))
	if m == nil {
		return v.of(g, g.model(), nodesFor(g.model()), g.asks(part, nil))
	}
	return v.of(g, m.pod, m.says(), m.beside)
}

// variantOf returns the variant of a part where others make the pods, and else that of all.
func (g *gang) variantOf(part rank.Part) *variant {
	if !g.theirs() {
		return &variant{pod: g.model(), beside: g.demand.Beside}
	}
	return (&variants{}).ofPart(g, part)
}

// alike returns ranks that have pods by the variants of these.
func (g *gang) alike(ranks []int) (out [][]int) {
	if !g.theirs() {
		return [][]int{ranks}
	}
	var variants variants
	at := map[*variant]int{}
	for _, index := range ranks {
		s := variants.ofPart(g, rank.Part{Index: index})
		if len(variants.all) > len(out) {
			at[s], out = len(out), append(out, nil)
		}
		out[at[s]] = append(out[at[s]], index)
	}
	return out
}

// lacking returns what a node has too little of beside GPUs for as many pods of a gang as its GPUs would do for; empty
// where it has enough: by those that have no place and may be there. Of those of many kinds it goes by the first.
func (t *nodeTable) lacking(g *gang) func(node string, pods int) string {
	var variants variants
	wants, barred := map[*variant]int{}, map[*variant]func(node string) bool{}
	if g.theirs() {
		for m := range g.parts() {
			if m.stage == unplaced {
				wants[variants.ofPart(g, m.part)]++
			}
		}
	}
	if len(wants) == 0 {
		return func(node string, pods int) string { return t.fleet.Lacks(node, g.full.Beside, pods) }
	}
	some := variants.all[:min(len(variants.all), mostKinds)]
	for _, s := range some {
		barred[s] = plan.Either(t.usableTo(g.full.Flavor, s.pod, s.says).barred, s.ban.has())
	}
	return func(node string, pods int) string {
		for _, s := range some {
			if barred[s] == nil || !barred[s](node) {
				if lacks := t.fleet.Lacks(node, s.beside, min(pods, wants[s])); lacks != "" {
					return lacks
				}
			}
		}
		return ""
	}
}

// saidOfNodes is what a pod says of nodes.
type saidOfNodes struct {
	of   *corev1.Pod
	says string
}

// says is what the pod of a member says of nodes.
func (m *member) says() string {
	if m.said.of != m.pod {
		m.said.of, m.said.says = m.pod, nodesFor(m.pod)
	}
	return m.said.says
}

// byKind has missing pods of a gang say of what kind they are, where these differ; of a decision to cut with what nodes
// have said of such, and to which part of the nodes each is bound so that they are spread.
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
	var variants variants
	for i, part := range out {
		of := bound{variant: variants.ofPart(g, part.Part)}
		if l != nil && l.parts != nil {
			of.spare = part.Spare
			if len(SpreadKeys(of.pod)) > 0 && !part.Spare {
				of.part = l.parts[l.on[part.Part]]
			}
		}
		if kinds[of] == nil {
			kinds[of] = t.kindOf(g, of.variant, l.outside(of.part), cuts)
		}
		out[i].Kind = kinds[of]
	}
	return out
}

// kindOf returns pods of a variant of a gang as a plan has them, which are not to be on some nodes.
func (t *nodeTable) kindOf(g *gang, s *variant, outside func(node string) bool, cuts bool) *plan.Kind {
	turned := plan.Either(s.ban.has(), outside)
	if cuts {
		turned = plan.Either(turned, s.cuts.has())
	}
	of := t.usableTo(g.full.Flavor, s.pod, s.says)
	k := &plan.Kind{Pod: s.pod.Name, Says: s.says, Beside: s.beside, Barred: of.barred, Nodes: of.nodes,
		Domains: of.domains}
	if turned != nil {
		k.Barred = plan.Either(of.barred, turned)
		k.Nodes = slices.DeleteFunc(slices.Clone(of.nodes), turned)
		k.Domains = t.inDomains(k.Nodes)
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
		barred = plan.Either(barred, t.usableTo(g.run.Spec.Resources.GPUType, s.pod, s.says).barred)
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
	usable := map[string]bool{}
	for _, s := range variants {
		of := t.usableTo(g.run.Spec.Resources.GPUType, s.pod, s.says)
		if of.barred == nil {
			return nil
		}
		for _, node := range of.nodes {
			usable[node] = true
		}
	}
	return func(node string) bool { return !usable[node] }
}
