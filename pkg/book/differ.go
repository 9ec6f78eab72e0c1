package book

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// variant is pods of a gang that are alike in which nodes they may use, and in what they ask for of these beside GPUs.
// Those that a Run makes all are; those that others make may not be, such as Jobs of a JobSet on two node pools.
type variant struct {
	pod     *corev1.Pod
	beside  *topology.Amounts
	missing []plan.Missing
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
			out, _ = variantOf(out, m.pod, m.beside)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// variantOf returns some variants with that of a pod among them.
func variantOf(variants []*variant, pod *corev1.Pod, beside *topology.Amounts) ([]*variant, *variant) {
	for _, s := range variants {
		if s.like(pod, beside) {
			return variants, s
		}
	}
	s := &variant{pod: pod, beside: beside}
	return append(variants, s), s
}

// missingBy returns missing pods of a gang by their variants. One that has not been made is taken for such as the
// others of its group are, and a spare for such as its group's first rank is.
func (g *gang) missingBy(missing []plan.Missing) (out []*variant) {
	for _, part := range missing {
		index := part.Index
		if part.Spare {
			index = g.demand.Group(part.Part) * g.demand.PodsPerGroup
		}
		pod, beside := g.modelOf(rank.Part{Index: index}), g.demand.Beside
		if m := g.rankAt(index); m != nil {
			pod, beside = m.pod, m.beside
		}
		var s *variant
		out, s = variantOf(out, pod, beside)
		s.missing = append(s.missing, part)
	}
	return out
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

// planVariants plans missing pods of a gang, each by what it may use itself: those first that may use the fewest nodes,
// and the others beside them.
func (x *starter) planVariants(g *gang, d plan.Demand, claim plan.Claim, missing []plan.Missing,
	rejected func(string) bool, now time.Time) ([]plan.Assignment, *plan.Refusal) {
	if g.variants() == nil {
		return plan.Gang(x.fleet, x.accounts, d, claim, missing, rejected, now)
	}
	variants := g.missingBy(missing)
	usable := map[*variant]int{}
	without := map[*variant]func(string) bool{}
	for _, s := range variants {
		without[s] = either(rejected, x.nodes.barred(d.Flavor, s.pod))
		for node := range x.nodes.ofFlavor[d.Flavor] {
			if without[s] == nil || !without[s](node) {
				usable[s]++
			}
		}
	}
	slices.SortStableFunc(variants, func(a, b *variant) int { return cmp.Compare(usable[a], usable[b]) })
	out, refusal := x.planEach(g, d, claim, variants, without, "", now)
	if refusal == nil || !d.OneDomain && !(d.Confined && d.Groups == 1) || len(variants) < 2 {
		return out, refusal
	}
	for _, domain := range x.nodes.domains(d.Flavor) { // the first variant's choice may have no room for the others
		if out, short := x.planEach(g, d, claim, variants, without, domain, now); short == nil {
			return out, nil
		}
	}
	return nil, refusal
}

// planEach plans variants of a gang's pods one beside the other, in a domain if one is given and where ranks are free
// to choose.
func (x *starter) planEach(g *gang, d plan.Demand, claim plan.Claim, variants []*variant,
	without map[*variant]func(string) bool, domain string, now time.Time) (out []plan.Assignment, _ *plan.Refusal) {
	fork := plan.NewFork(x.fleet, x.accounts)
	defer fork.Revert()
	claim.Most = maps.Clone(claim.Most)
	for _, s := range variants {
		parts := slices.Clone(s.missing)
		for i := range parts {
			if parts[i].Domain == "" && (d.Confined || d.OneDomain) {
				parts[i].Domain = domain
			}
		}
		g.gather(out, parts)
		of := d
		of.Beside = s.beside
		assignments, refusal := plan.Gang(x.fleet, x.accounts, of, claim, parts, without[s], now)
		if refusal != nil {
			return nil, refusal
		}
		for _, a := range assignments {
			m := &member{gang: g, part: a.Part, node: a.Node, payer: payer{a.Payer, a.Relation}}
			fork.Take(a.Node, d.GPUsPerPod, s.beside)
			fork.Open("planned/"+a.Part.PodName(string(g.run.UID)), x.seats.chargeOf(m, now))
			if most, bounded := claim.Most[a.Node]; bounded {
				claim.Most[a.Node] = max(0, most-1)
			}
		}
		out = append(out, assignments...)
	}
	return out, nil
}

// domains returns the domains that nodes of a flavor lie in, in order.
func (t *nodeTable) domains(flavor string) []string {
	all := map[string]bool{}
	for node := range t.ofFlavor[flavor] {
		if domain := t.fleet.DomainOf(node); domain != "" {
			all[domain] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
