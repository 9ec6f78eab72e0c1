package book

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// nodeTable is what is known of nodes: what they are, which of them serve, and in which fabric domains they are.
type nodeTable struct {
	accounts *budget.Accounts
	args     *config.Args
	loss     nodeloss.Rules // what counts as evidence of a loss
	fleet    *topology.Fleet

	kinds    kinds
	byName   map[string]*corev1.Node
	ofFlavor map[string]map[string]*corev1.Node // by flavor and name
	sizes    map[string]map[nodeSize]int        // by flavor: how many nodes of each size
	counted  map[string]string                  // the resource of a flavor that has nodes
	tainted  map[string]map[string]*corev1.Node // by flavor and name
	draining map[string]bool                    // nodes that are to be emptied
	signs    map[string]bool                    // nodes that show a sign of an outage without a date
	losing   map[string]bool                    // nodes whose loss is being recorded
	strayed  map[string]string                  // the former domains of nodes that are left out
	// heldBack are the nodes with signs of loss that are not taken for lost, since too many show one.
	heldBack map[string]bool
	// suspects are the nodes that had better not be used, and until when.
	suspects map[string]time.Time
	// usable are the nodes that kinds of pods may use by what both say, as far as it has been asked.
	usable map[says]*keptNodes
	// asks says that other scheduling rules are asked about what is decided.
	asks bool
}

func (t *nodeTable) flavorOf(node *corev1.Node) string {
	value := node.Labels[t.args.FlavorLabel]
	if value == "" {
		return ""
	}
	return t.args.FlavorOf(value)
}

func (t *nodeTable) gpusOf(node *corev1.Node) int {
	return t.args.GPUResource.Sum(node.Status.Allocatable)
}

// podGPUs returns the GPUs that a pod requests: as PodGPUs counts them.
func (t *nodeTable) podGPUs(pod *corev1.Pod) int {
	return rank.PodGPUs(&pod.Spec, t.args.GPUResource...)
}

func (t *nodeTable) nodeFlavor(name string) string {
	if node := t.byName[name]; node != nil {
		return t.flavorOf(node)
	}
	return ""
}

// anyMachine reports whether a node without GPUs names a type in a label that every machine has, such as its instance
// type or node pool, and no node of that type has any: it is no part of a GPU fleet.
func (t *nodeTable) anyMachine(name string) bool {
	node := t.byName[name]
	return node != nil && !saysGPU(t.args.FlavorLabel) && t.args.GPUResource.On(node) == "" &&
		t.fleet.Whole(t.flavorOf(node)).Largest() == 0
}

// saysGPU reports whether a label, by its key, is one for nodes with GPUs, or other accelerators, alone.
func saysGPU(label string) bool {
	label = strings.ToLower(label)
	return slices.ContainsFunc([]string{"gpu", "tpu", "accelerator", "flavor"}, func(word string) bool {
		return strings.Contains(label, word)
	})
}

// types returns the types of GPU of the fleet, in order. A type stays one while the devices of all its nodes are away,
// as they are while a device plugin starts again; nodes that want a label, or offer another resource, make none.
func (t *nodeTable) types() []string {
	out := t.fleet.Flavors()
	for flavor := range t.ofFlavor {
		if flavor != "" && !slices.Contains(out, flavor) && t.awaited(flavor) {
			out = append(out, flavor)
		}
	}
	slices.Sort(out)
	return out
}

// awaited reports whether nodes of a type take part as soon as their devices are there, which nobody knows yet.
func (t *nodeTable) awaited(flavor string) bool {
	for _, node := range t.ofFlavor[flavor] {
		if t.awaitsDevices(node) {
			return true
		}
	}
	return false
}

// awaitsDevices reports whether a node of a type takes part as soon as it has GPUs.
func (t *nodeTable) awaitsDevices(node *corev1.Node) bool {
	return t.gpusOf(node) == 0 && t.unfit(node) == "" && !t.anyMachine(node.Name) && t.fleet.Unplaced(node.Labels) == ""
}

// gpusOfAll returns the number of GPUs of all nodes of a flavor together.
func (t *nodeTable) gpusOfAll(flavor string) int {
	total := 0
	of := t.resourceOf(flavor)
	for size, nodes := range t.sizes[flavor] {
		if size.resource == of {
			total += size.gpus * nodes
		}
	}
	return total
}

// inPiecesOf returns how many GPUs of all nodes of a flavor together pods can have that ask for so many each, and how
// many the largest of the nodes has.
func (t *nodeTable) inPiecesOf(each int, flavor string) (total, largest int) {
	of := t.resourceOf(flavor)
	for size, nodes := range t.sizes[flavor] {
		if size.resource == of && nodes > 0 {
			total += size.gpus / each * each * nodes
			largest = max(largest, size.gpus)
		}
	}
	return total, largest
}

// freeOn returns how many GPUs of a node are free; 0 for one that is not there.
func (t *nodeTable) freeOn(name string) int {
	node := t.byName[name]
	if node == nil {
		return 0
	}
	return t.gpusOf(node) - t.fleet.Held(name)
}

// evident reports whether a node says of itself that it is lost: what happens to its pods happens for that, also before
// it is recorded. A sign that is held back says nothing.
func (t *nodeTable) evident(node *corev1.Node) bool {
	reason, _, lost := t.loss.Evident(node)
	return lost && (reason.Certain() || !t.heldBack[node.Name])
}

// lossOf reports whether a node that exists is recorded as lost, and when.
func (t *nodeTable) lossOf(name string) (time.Time, bool) {
	if node := t.byName[name]; node != nil {
		return nodeloss.Recorded(node)
	}
	return time.Time{}, false
}

func (t *nodeTable) stands(name string) bool {
	node := t.byName[name]
	_, lost := t.lossOf(name)
	return node != nil && !t.losing[name] && !lost && !t.evident(node)
}

// serves reports whether anything may be placed on a node: it stands, without a sign of loss or of an outage, and is
// not cordoned.
func (t *nodeTable) serves(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && !t.signs[node.Name] && t.stands(node.Name) && !t.heldBack[node.Name]
}

// inFleet returns what the packer is to know of a node.
func (t *nodeTable) inFleet(node *corev1.Node) topology.Node {
	window, _ := outage.WindowOf(node)
	return topology.Node{Name: node.Name, Labels: node.Labels, Flavor: t.flavorOf(node), GPUs: t.gpusOf(node),
		Beside: t.kinds.besideOn(node), Unschedulable: !t.serves(node), Outage: window, Unfit: t.unfit(node)}
}

func (t *nodeTable) forgetNode(name string) {
	old := t.byName[name]
	if old == nil {
		return
	}
	flavor := t.flavorOf(old)
	t.sizes[flavor][t.sizeOf(old)]--
	delete(t.byName, name)
	delete(t.draining, name)
	delete(t.signs, name)
	delete(t.suspects, name)
	t.accounts.DeleteNode(name)
	delete(t.tainted[flavor], name)
	delete(t.ofFlavor[flavor], name)
	t.changed(flavor, name)
}

// noteNode knows a node from now on.
func (t *nodeTable) noteNode(node *corev1.Node) {
	flavor := t.flavorOf(node)
	t.byName[node.Name] = node
	if outage.Drains(node) {
		t.draining[node.Name] = true
	}
	if _, shows := outage.SignOf(node); shows {
		t.signs[node.Name] = true
	}
	if until := suspicion.Of(node).Until(); !until.IsZero() {
		t.suspects[node.Name] = until
	}
	if t.ofFlavor[flavor] == nil {
		t.ofFlavor[flavor], t.tainted[flavor] = map[string]*corev1.Node{}, map[string]*corev1.Node{}
		t.sizes[flavor] = map[nodeSize]int{}
	}
	t.ofFlavor[flavor][node.Name] = node
	t.sizes[flavor][t.sizeOf(node)]++
	if slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return blocksScheduling(&taint) }) {
		t.tainted[flavor][node.Name] = node
	}
}

// noteBeat knows a node of which nothing has changed that decisions read.
func (t *nodeTable) noteBeat(node *corev1.Node) {
	flavor := t.flavorOf(node)
	t.byName[node.Name], t.ofFlavor[flavor][node.Name] = node, node
	if t.tainted[flavor][node.Name] != nil {
		t.tainted[flavor][node.Name] = node
	}
}

// lostRanks returns the ranks of a running gang that have no place since a node was lost with the last one that they
// had, or ended it, and those nodes.
func (t *nodeTable) lostRanks(g *gang) map[int]string {
	if !g.started() {
		return nil
	}
	var out map[int]string
	for index, m := range g.active.between(0, g.active.size) {
		last := g.latest[rank.Part{Index: index}]
		// that a pod is gone may be known elsewhere before it is here: it is enough that its Lease is closed
		if last == nil || g.forgone(index) ||
			m != nil && m.stage > unplaced && !(last.lost() && last.pod == m.pod.UID) {
			continue
		}
		if !last.lost() && t.stands(last.node) {
			continue
		}
		if out == nil {
			out = map[int]string{}
		}
		out[index] = last.node
	}
	return out
}

// unsuspected adds to the nodes that are excluded those that are suspect (R34).
func (t *nodeTable) unsuspected(excluded func(node string) bool, now time.Time) func(node string) bool {
	if len(t.suspects) == 0 {
		return excluded
	}
	return func(node string) bool { return now.Before(t.suspects[node]) || excluded != nil && excluded(node) }
}

// deadRanks returns the ranks of a running gang that have no place since the last pod that had it has failed by itself,
// and those pods.
func (t *nodeTable) deadRanks(g *gang) map[int]types.UID {
	if !g.started() || g.opportunistic() {
		return nil
	}
	var out map[int]types.UID
	for index, m := range g.active.between(0, g.active.size) {
		last := g.latest[rank.Part{Index: index}]
		if last == nil || !last.died() || m != nil && m.stage > unplaced && last.pod != m.pod.UID {
			continue
		}
		if out == nil {
			out = map[int]types.UID{}
		}
		out[index] = last.pod
	}
	return out
}

func blocksScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}
