package book

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// barred returns a test for the nodes of a flavor that a pod may not use by what they and the pod say: taints that it
// does not tolerate, node affinity that does not match, and all of them where they have another resource than it
// requests. It returns nil when there is none among those that serve.
func (t *nodeTable) barred(flavor string, pod *corev1.Pod) func(node string) bool {
	if len(t.args.GPUResource) > 1 && t.asksBut(pod, t.resourceOf(flavor)) != "" {
		return func(string) bool { return true }
	}
	bad := map[string]bool{}
	for name, node := range t.tainted[flavor] {
		if t.serves(node) && !tolerates(pod, node) {
			bad[name] = true
		}
	}
	if choosesNodes(pod) {
		affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
		for name, node := range t.ofFlavor[flavor] {
			if ok, err := affinity.Match(node); !ok || err != nil {
				bad[name] = true
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return func(node string) bool { return bad[node] }
}

// choosesNodes reports whether a pod says something of nodes' labels.
func choosesNodes(pod *corev1.Pod) bool {
	return len(pod.Spec.NodeSelector) > 0 || pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil
}

// bars is barred for who asks about few nodes.
func (t *nodeTable) bars(flavor string, pod *corev1.Pod) func(node string) bool {
	if !choosesNodes(pod) && len(t.tainted[flavor]) == 0 {
		return nil
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	return func(name string) bool {
		node := t.byName[name]
		ok, err := affinity.Match(node)
		return !ok || err != nil || !tolerates(pod, node)
	}
}

// rejected returns a test for the nodes that one of a gang's pods at least may not use: those that they are barred
// from, those that another scheduling rule has turned down, and those that have ended ranks which have no other
// place yet. It returns nil when there is none, so that pack need not look at single nodes. What nodes have beside
// GPUs is the packer's to know.
func (t *nodeTable) rejected(g *gang, pod *corev1.Pod) func(node string) bool {
	rejected := t.turning(g, t.barredToAny(g, pod), g.fled())
	for _, b := range g.bans {
		if b.alone == "" {
			rejected = plan.Either(rejected, b.has())
		}
	}
	return rejected
}

// rejectedAll is rejected with the nodes that none of the gang's pods may use, where these differ: those apart that
// have turned some of them down.
func (t *nodeTable) rejectedAll(g *gang, pod *corev1.Pod) func(node string) bool {
	return t.turning(g, t.barredToAll(g, pod), g.fled())
}

// rejecting is rejected with the nodes that ranks are to leave if they can: those are none for who stays there.
func (t *nodeTable) rejecting(g *gang, pod *corev1.Pod, fled []string) func(node string) bool {
	return plan.Either(t.turning(g, t.barred(g.run.Spec.Resources.GPUType, pod), fled), g.banned(pod))
}

// turning adds to the nodes that pods of a gang are barred from those that another rule has turned down, and those that
// ranks are to leave.
func (t *nodeTable) turning(g *gang, barred func(node string) bool, fled []string) func(node string) bool {
	evictors := g.evictors()
	if len(g.excluded)+len(evictors)+len(fled) == 0 {
		return barred
	}
	excluded := map[string]string{}
	maps.Copy(excluded, g.excluded)
	for _, node := range evictors {
		excluded[node] = "it has ended or rejected a rank"
	}
	for _, node := range fled {
		excluded[node] = "a rank has died there again"
	}
	return func(node string) bool { return excluded[node] != "" || barred != nil && barred(node) }
}

// accepts reports whether a rank of a gang that is of some kind could be bound to a node by what both are.
func (t *nodeTable) accepts(g *gang, name string, kind *variant) bool {
	node := t.byName[name]
	return node != nil && t.serves(node) && g.excluded[name] == "" && admits(node, kind.pod) &&
		(kind.ban == nil || kind.ban.nodes[name] == "")
}

// blame adds to a refusal for want of room, or of room where the money pays, which nodes other scheduling rules keep
// the gang from. They are its reason only where it would fit if they did not: a fleet that is full is full, whatever
// else was found out about one of its nodes. fits says whether it would, with other nodes rejected, for pods that ask
// for nothing beside GPUs. A gang that lacks ranks does not rest: it gives up soon if they find no place.
func (t *nodeTable) blame(g *gang, pod *corev1.Pod, refusal *plan.Refusal, now time.Time,
	fits func(rejected func(string) bool) bool) {
	if !refusal.AboutRoom() && !refusal.Elsewhere {
		return
	}
	barred := t.barredToAll(g, pod)
	t.sayWhy(refusal, pod)
	rejection := t.rejection(g, barred, now)
	if rejection == nil {
		return
	}
	if !rejection.Known && g.asksBeyond(pod) && (!g.started() || g.grows() || refusal.Spare || refusal.Belated) {
		rejection.Rest = g.check.retryRest()
	}
	if fits(barred) {
		refusal.Reason = plan.NodesRejected
	}
	t.sayWithout(refusal, rejection, g)
}

// sayWithout says of a refusal which nodes other scheduling rules keep a gang from, if any.
func (t *nodeTable) sayWithout(refusal *plan.Refusal, rejected *plan.Rejection, g *gang) {
	refusal.Without(rejected)
	if rejected != nil {
		t.sayDomain(refusal, g)
	}
}

// sayDomain adds to a refusal by other scheduling rules that a group asks for domains to itself that groups of GPUs do
// not have: that may be why. Whoever may edit the Run may have written that, and what is no key of a label is not told.
func (t *nodeTable) sayDomain(refusal *plan.Refusal, g *gang) {
	keys := strings.SplitN(g.run.Annotations[rqv1.AnnotationExclusive], ",", mostKeys+1)
	keys = keys[:min(len(keys), mostKeys)]
	if !g.run.Spec.Theirs() || slices.ContainsFunc(keys, func(key string) bool {
		return len(validation.IsQualifiedName(key)) > 0
	}) {
		return
	}
	if text := plan.OtherDomains("it", keys, t.args.FabricLevel); text != "" {
		refusal.Message += "; " + text
	}
}

// mostKeys is of how many labels it is told.
const mostKeys = 4

// rejection returns which nodes other scheduling rules keep a gang from: those that were turned down since it was last
// woken, those that took fewer of its pods than their free GPUs would do for, those that what its pods share does not
// reach, those that have too little beside these for as many, and those of which an outage is planned. It is nil when
// there are none.
func (t *nodeTable) rejection(g *gang, barred func(node string) bool, now time.Time) *plan.Rejection {
	turned, lacks := g.turnedBy(), t.lacking(g)
	out := &plan.Rejection{Known: len(turned) == 0}
	for name, why := range turned {
		out.Add(name, why)
	}
	for name, node := range t.ofFlavor[g.full.Flavor] {
		pods := t.fleet.Free(name) / max(1, g.full.GPUsPerPod)
		if pods == 0 || turned[name] != "" || barred != nil && barred(name) || !t.serves(node) {
			continue
		}
		if planned := t.fleet.Outage(name); planned.ShutsMovable(now, g.lastsUntil(now), g.leavesBefore()) {
			out.Add(name, planned.String())
		} else if most, bounded := g.upTo[name]; bounded && most < pods {
			out.Known = false
			out.Add(name, g.why[name])
		} else if why := g.check.beyondFirst()[name]; why != "" {
			out.Known = false
			out.Add(name, why)
		} else if lacks := lacks(name, pods); lacks != "" {
			out.Add(name, ruleOn(lacks))
		}
	}
	if out.Nodes == 0 {
		return nil
	}
	return out
}

// unfitForSpare returns a test for the nodes that a spare may not use: those that the rank which it is like may not use
// or that turned that down, suspect ones, and those that its own pod is barred from.
func (t *nodeTable) unfitForSpare(spare *member, now time.Time) func(node string) bool {
	g := spare.gang
	rejected := t.unsuspected(g.without(t.rejecting(g, g.modelOf(spare.part), g.fled()), now), now)
	barred := t.barred(g.run.Spec.Resources.GPUType, spare.pod)
	if len(g.spurned) == 0 && barred == nil {
		return rejected
	}
	return func(node string) bool {
		return g.spurned[node] || rejected != nil && rejected(node) || barred != nil && barred(node)
	}
}

// without adds to the nodes that a gang's pods may not use those that have ended a spare or a shard of it, or turned it
// away, within an hour: it would go there again and again.
func (g *gang) without(rejected func(node string) bool, now time.Time) func(node string) bool {
	if len(g.turnedOut) == 0 {
		return rejected
	}
	return func(node string) bool {
		at, out := g.turnedOut[node]
		return out && now.Sub(at) < ending.BlamedFor || rejected != nil && rejected(node)
	}
}

// servedBy returns the nodes that serve a gang now.
func (t *nodeTable) servedBy(g *gang) map[string]serving {
	out, barred := map[string]serving{}, t.barredToAll(g, g.model())
	for name, node := range t.ofFlavor[g.run.Spec.Resources.GPUType] {
		if t.serves(node) && (barred == nil || !barred(name)) {
			out[name] = serving{node.UID, t.gpusOf(node)}
		}
	}
	return out
}

// admits reports whether a pod may go to a node by what both say.
func admits(node *corev1.Node, pod *corev1.Pod) bool { return whyBarred(node, pod) == "" }

// tolerates reports whether no taint of a node keeps a pod off it.
func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	_, untolerated := untoleratedTaint(pod, node)
	return !untolerated
}

// untoleratedTaint returns the first taint of a node that keeps a pod off it.
func untoleratedTaint(pod *corev1.Pod, node *corev1.Node) (corev1.Taint, bool) {
	return schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
		blocksScheduling, true)
}
