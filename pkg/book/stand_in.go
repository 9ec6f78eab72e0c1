package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// asItsOwn makes a leader's spec that of another pod, with other labels. The volumes and devices that are made for a
// pod once it is there are left out: whoever is asked about them before would turn all nodes down.
func asItsOwn(spec *corev1.PodSpec, was, is map[string]string) {
	ownVolume := func(v corev1.Volume) bool { return v.Ephemeral != nil }
	ownClaim := func(c corev1.PodResourceClaim) bool { return c.ResourceClaimTemplateName != nil }
	if slices.ContainsFunc(spec.Volumes, ownVolume) {
		spec.Volumes = slices.DeleteFunc(slices.Clone(spec.Volumes), ownVolume)
	}
	if slices.ContainsFunc(spec.ResourceClaims, ownClaim) {
		spec.ResourceClaims = slices.DeleteFunc(slices.Clone(spec.ResourceClaims), ownClaim)
	}
	if spec.Affinity != nil {
		spec.Affinity = spec.Affinity.DeepCopy()
		for _, t := range termsOf(spec.Affinity) {
			readAgain(t.LabelSelector, slices.Concat(t.MatchLabelKeys, t.MismatchLabelKeys), was, is)
		}
	}
	spread := spec.TopologySpreadConstraints
	spec.TopologySpreadConstraints = nil
	for i := range spread {
		c := spread[i].DeepCopy()
		readAgain(c.LabelSelector, c.MatchLabelKeys, was, is)
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, *c)
	}
}

// termsOf returns the terms of an affinity that are about other pods.
func termsOf(a *corev1.Affinity) (out []*corev1.PodAffinityTerm) {
	collect := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			out = append(out, &required[i])
		}
		for i := range preferred {
			out = append(out, &preferred[i].PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		collect(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		collect(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// readAgain has a selector say by some keys what the API server would read from a pod's labels, and not what it has
// read from another's.
func readAgain(s *metav1.LabelSelector, keys []string, was, is map[string]string) {
	if s == nil {
		return
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		if slices.Contains(keys, e.Key) && slices.Equal(e.Values, []string{was[e.Key]}) {
			e.Values = []string{is[e.Key]}
		}
	}
}

// model returns a rank of the gang as the API server has admitted it: what rules its pods use is not for the template
// alone to say. While there is none, or all have ended, of which not everything is known any more, it is the
// template's, with what spares tolerate, which ranks did. Where others make the pods there is no template, and one that
// has ended says more than none.
func (g *gang) model() *corev1.Pod {
	var ended *corev1.Pod
	for _, m := range g.active.members {
		switch {
		case m == nil || m.standIn:
		case m.stage < finished:
			return m.pod
		case ended == nil && g.theirs():
			ended = m.pod
		}
	}
	if ended != nil {
		return ended
	}
	pod := podOf(g.run)
	for _, m := range g.spares.members {
		if m != nil && !m.standIn {
			pod.Spec.Tolerations = m.pod.Spec.Tolerations
			break
		}
	}
	return pod
}

// modelOf returns the model of a part: where others make the pods, each is its own.
func (g *gang) modelOf(part rank.Part) *corev1.Pod {
	if m := g.standsFor(part); m != nil {
		return m.pod
	}
	return g.model()
}

// standsFor returns the rank whose pod, which others have made, stands for that of a part: its own, for a spare the
// first of its group, or else another of the same group, since what they ask for may name their group. It is nil where
// there is none.
func (g *gang) standsFor(part rank.Part) *member {
	if !g.theirs() {
		return nil
	}
	index := g.indexOf(part)
	first := max(0, index-index%g.demand.PodsPerGroup)
	if m := g.rankAt(index); m != nil && !m.standIn && m.stage < finished {
		return m
	}
	for _, m := range g.active.between(first, first+g.demand.PodsPerGroup) {
		if m != nil && !m.standIn && m.stage < finished {
			return m
		}
	}
	return nil
}

// theirs reports whether others make the pods of a gang that has a shape, which may differ.
func (g *gang) theirs() bool {
	return g.run != nil && g.shape == nil && g.run.Spec.Theirs() && g.demand.PodsPerGroup > 0
}

// indexOf returns the index of a rank, or of the one that a spare is like: the first of its group.
func (g *gang) indexOf(part rank.Part) int {
	switch {
	case !part.Spare:
		return part.Index
	case g.demand.SparesPerGroup == 0: // it is beyond what there is to be
		return 0
	}
	return g.demand.Group(part) * g.demand.PodsPerGroup
}

// asks returns what a part of a gang asks for of its node beside GPUs: while others have not made its pod, what its
// last one did, or what others of its group do where that is not known.
func (g *gang) asks(part rank.Part, last *topology.Amounts) *topology.Amounts {
	if !g.theirs() {
		return g.demand.Beside
	}
	if m := g.rankAt(g.indexOf(part)); m != nil { // it may have ended
		return m.beside
	}
	if m := g.standsFor(part); last == nil && m != nil {
		return m.beside
	}
	return cmp.Or(last, g.demand.Beside)
}

// standInFor returns a pod as the API server would admit it for a part of a gang: ranks differ from the leader, which
// it has admitted, by name and number alone.
func (g *gang) standInFor(part rank.Part) *corev1.Pod {
	model := g.modelOf(part)
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
