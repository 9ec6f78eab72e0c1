package simulated

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// judge does what the scheduler's controller of nodes does, by the same rules: it finds out which nodes are lost,
// records that on them, holds it back while too many show a sign, and gives them back that show none any more.
type judge struct {
	sights map[string]*nodeloss.Sight
	seen   map[string]*corev1.Node
	held   map[string]nodeloss.Verdict
	// silent are the nodes whose kubelets are.
	silent map[string]bool
	// since is when the process began, and again when it is to look next, whatever happens; zero for never.
	since, again time.Time
}

// begin has a process begin, which has seen nothing.
func (j *judge) begin(c *Cluster) {
	j.sights, j.seen, j.held = map[string]*nodeloss.Sight{}, map[string]*corev1.Node{}, map[string]nodeloss.Verdict{}
	j.since = noon
	if c.Cluster != nil {
		j.since = c.Now()
	}
	for name := range j.silent {
		j.sight(name).SeeHeartbeat(j.since, j.since)
	}
}

func (j *judge) sight(name string) *nodeloss.Sight {
	if j.sights[name] == nil {
		j.sights[name] = &nodeloss.Sight{}
	}
	return j.sights[name]
}

// silence has a kubelet not be heard any more, and hear has it be heard again.
func (j *judge) silence(c *Cluster, name string) {
	if j.silent == nil {
		j.silent = map[string]bool{}
	}
	j.silent[name] = true
	j.sight(name).SeeHeartbeat(c.Now(), c.Now())
}

func (j *judge) hear(name string) {
	delete(j.silent, name)
	j.sight(name).LoseHeartbeat()
}

// look judges all nodes.
func (j *judge) look(c *Cluster) {
	j.again = time.Time{}
	for name := range j.seen {
		if c.Nodes[name] == nil {
			delete(j.seen, name)
			delete(j.sights, name)
		}
	}
	names := slices.Sorted(maps.Keys(c.Nodes))
	for _, name := range names {
		if node := c.Nodes[name]; j.seen[name] != node {
			j.seen[name] = node
			j.sight(name).SeeNode(node, c.Now())
		}
	}
	j.giveBack(c, names)
	j.lose(c, names)
}

// later has it look again at an instant.
func (j *judge) later(at time.Time) {
	if j.again.IsZero() || at.Before(j.again) {
		j.again = at
	}
}

// giveBack takes the records off nodes that somebody has uncordoned, and the cordon too off those that are well.
func (j *judge) giveBack(c *Cluster, names []string) {
	for _, name := range names {
		node := c.Nodes[name]
		if nodeloss.Forgiven(node) {
			c.clear(node)
			continue
		}
		from := c.rules.Back(j.sight(name))
		switch {
		case from.IsZero():
		case from.After(c.Now()):
			j.later(from)
		case c.holding()[name]:
			j.later(c.Now().Add(time.Second))
		default:
			c.clear(node)
			c.tell("Node", name, "GivenBack", "the sign of its loss is gone")
		}
	}
}

// clear takes the record of a loss off a node, with the scheduler's cordon.
func (c *Cluster) clear(node *corev1.Node) {
	node = node.DeepCopy()
	node.Spec.Unschedulable = false
	delete(node.Annotations, rqv1.AnnotationLost)
	delete(node.Annotations, rqv1.AnnotationCordoned)
	c.SetNode(node)
	c.Revive(node.Name)
}

// holding are the nodes of open Leases.
func (c *Cluster) holding() map[string]bool {
	out := map[string]bool{}
	for _, l := range c.OpenLeases() {
		out[l.Node()] = true
	}
	return out
}

// lose records nodes as lost that are, all of them before anything is done about any.
func (j *judge) lose(c *Cluster, names []string) {
	var holding map[string]bool
	var signs *nodeloss.Signs
	found, held := map[string]nodeloss.Verdict{}, map[string]nodeloss.Verdict{}
	for _, name := range names {
		v := c.rules.Judge(j.sight(name), j.since, c.Now())
		if !v.Again.IsZero() {
			j.later(v.Again)
		}
		if !v.Lost || c.Book.Recorded(name) {
			continue
		}
		if holding == nil {
			holding = c.holding()
			signs = j.count(c)
		}
		switch treatment := signs.Treat(v); {
		case !holding[name], treatment == nodeloss.Wait:
		case treatment == nodeloss.HoldBack:
			held[name] = v
		default:
			found[name] = v
		}
	}
	j.holdBack(c, held, signs)
	lost := slices.Sorted(maps.Keys(found))
	c.Book.SetLosing(lost, true)
	for _, name := range lost {
		c.record(name, found[name])
	}
}

// record has a node be found lost, and notes whether its cordon is the scheduler's.
func (c *Cluster) record(name string, v nodeloss.Verdict) {
	was := c.Nodes[name].Spec.Unschedulable
	c.LoseFor(v, name)
	node := c.Nodes[name].DeepCopy()
	delete(node.Annotations, rqv1.AnnotationCordoned)
	if !was {
		node.Annotations[rqv1.AnnotationCordoned] = "true"
	}
	c.SetNode(node)
	c.tell("Node", name, "Lost", v.Message)
}

// count counts the nodes with GPUs that show a sign.
func (j *judge) count(c *Cluster) *nodeloss.Signs {
	out := &nodeloss.Signs{}
	for name, node := range c.Nodes {
		if c.Args.GPUResource.On(node) == "" {
			continue
		}
		out.Nodes++
		if c.rules.Sign(j.sight(name), j.since, c.Now()) {
			out.Shown++
		}
	}
	out.Limit = c.Args.NodesAtOnce(out.Nodes)
	return out
}

// holdBack has those nodes be held back, and no others, and marks them.
func (j *judge) holdBack(c *Cluster, held map[string]nodeloss.Verdict, signs *nodeloss.Signs) {
	if len(held)+len(j.held) == 0 {
		return
	}
	names := map[string]bool{}
	for name := range held {
		names[name] = true
	}
	c.Book.HoldBack(names)
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		v, is := held[name]
		if _, was := j.held[name]; was == is {
			continue
		}
		node := c.Nodes[name].DeepCopy()
		if delete(node.Annotations, rqv1.AnnotationHeldBack); is {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, rqv1.AnnotationHeldBack, nodeloss.Record(v, c.Now()))
			c.tell("Node", name, "HeldBack", fmt.Sprintf("%s, but %s", v.Message, signs.Say()))
		}
		c.SetNode(node)
	}
	j.held = held
}

// changeNode changes a node, as a person does, or a controller: who cordons it is known.
func (c *Cluster) changeNode(node *corev1.Node, change func()) error {
	is, err := known(c.Nodes, "node", node.Name)
	if err != nil {
		return err
	}
	is.DeepCopyInto(node)
	change()
	if node.Spec.Unschedulable != is.Spec.Unschedulable {
		node.ManagedFields = nil
		if node.Spec.Unschedulable {
			node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-cordon",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
		}
	}
	c.SetNode(node.DeepCopy())
	_, was := nodeloss.Recorded(is)
	if _, recorded := nodeloss.Recorded(node); was && !recorded {
		c.Revive(node.Name)
	}
	_, _, lost := c.rules.Evident(node)
	for i := range node.Spec.Taints {
		if taint := &node.Spec.Taints[i]; taint.Effect == corev1.TaintEffectNoExecute && !lost {
			c.EvictByTaint(node.Name, taint)
		}
	}
	return nil
}
