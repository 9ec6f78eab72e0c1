package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Check is what a gang has been given and what other scheduling rules are to be asked about before it counts (R31): a
// cut before it is published, since the plan knows no rules but those about what nodes have; and a start, if its pods
// use others.
type Check struct {
	// Run is the gang's.
	Run types.UID
	// Places are in the order in which the gang's pods come.
	Places []Place
	// Leaving are the pods that are gone by then, by node.
	Leaving map[string][]types.UID
	// Cuts says that others are cut for it, and Seats that the places are those of its spares, which stand by.
	Cuts, Seats bool
	// Nodes are those that the gang could be on by its GPUs, now or with others cut.
	Nodes []string
	// asked counts the checks of the gang, so that a late answer is not taken for that of another.
	asked int
}

// Place is where a pod is to go.
type Place struct {
	Pod  *corev1.Pod
	Node string
}

// Turning is a node that has turned down a pod of a gang after so many others of it, and why.
type Turning struct {
	Pod       types.UID
	Node, Why string
	Most      int
}

// checking is what a gang has been told by other scheduling rules that were asked.
type checking struct {
	// pending says that they are being asked, for which time, and refusal why the gang was refused before.
	pending bool
	asked   int
	refusal *plan.Refusal
	// most is how many pods the nodes take that turned down a start, and shunned, with why, and mostCut likewise for
	// those that turned down a decision to cut, until an instant, or until the nodes of its type have changed since.
	most, mostCut map[string]int
	shunned       map[string]string
	until         time.Time
	seen          int64
	tries         int
	// fails is how often a start has been refused for what the rules say since they last accepted one.
	fails int
	// rests says that nobody is cut for the gang until then.
	rests bool
}

// ask notes that rules are to be asked about what the gang has just been given, and why it was refused before.
func (c *checking) ask(before *plan.Refusal) {
	c.pending, c.refusal = true, before
	c.asked++
}

// AskRules has what is decided be checked with other scheduling rules from now on, by whoever has it decided.
func (b *Book) AskRules() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes.asks = true
}

// Check returns what is to be checked of the gang of a Run; nil when nothing is. Whoever is given one concludes it.
func (b *Book) Check(run types.UID) *Check {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || !g.check.pending {
		return nil
	}
	c := &Check{Run: run, Leaving: map[string][]types.UID{}, Cuts: g.activation != nil, asked: g.check.asked}
	c.Seats = g.asksForSeats()
	if c.Seats {
		b.places.seatsToAsk(g, c)
		return c
	}
	for m := range g.all() {
		if m.stage == assigned && !m.extra() {
			c.Places = append(c.Places, Place{m.pod, m.node})
		}
	}
	for uid, h := range b.seats.waitedFor {
		if slices.Contains(h.awaitedBy, g) {
			c.Leaving[h.node] = append(c.Leaving[h.node], uid)
		}
	}
	for name, node := range b.nodes.ofFlavor[g.full.Flavor] {
		if b.nodes.serves(node) && (c.Cuts || b.fleet.Free(name) >= g.full.GPUsPerPod) {
			c.Nodes = append(c.Nodes, name)
		}
	}
	slices.Sort(c.Nodes)
	return c
}

// Conclude notes what other rules say of what the gang of a check has been given: the nodes that turn its pods down, or
// none when all accept them. What they turn down is taken back, and may be planned again without those nodes. Where
// they stand in the way of a cut they are left alone for a while, the longer the more often that has happened; the last
// of several attempts has nobody be cut for the gang meanwhile. What has changed since the rules were asked is taken
// back as well, and asked about anew.
func (b *Book) Conclude(c *Check, turned []Turning, last bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[c.Run]
	if g == nil || !g.check.pending || g.check.asked != c.asked {
		return
	}
	g.check.pending = false
	if g.run != nil {
		b.mail.reconcile(keyOf(g.run), lane.Cut) // it was not looked at meanwhile
	}
	if c.Seats && g.run != nil {
		b.places.concludeSeats(g, c, turned)
		return
	}
	accepted := len(turned) == 0 && len(c.Places) > 0 && b.places.stand(c.Places)
	switch {
	case g.run == nil: // it has been deleted meanwhile
	case accepted:
		g.check = checking{asked: g.check.asked}
	case g.activation == nil:
		b.starts.refute(g, turned)
	default:
		b.turns.refute(g, turned, last, now)
	}
}

// stand reports whether pods still have the places that they were given.
func (p *placement) stand(places []Place) bool {
	return !slices.ContainsFunc(places, func(place Place) bool {
		m := p.roster.members[place.Pod.UID]
		return m == nil || m.node != place.Node || !m.placed()
	})
}

// refute takes a start back.
func (x *starter) refute(g *gang, turned []Turning) {
	for _, t := range turned {
		if t.Most > 0 {
			if g.check.most == nil {
				g.check.most = map[string]int{}
			}
			g.check.most[t.Node] = t.Most
		} else {
			g.excluded[t.Node] = t.Why
			if m := x.seats.roster.members[t.Pod]; m != nil {
				g.spurn(m, t.Node)
			}
		}
	}
	x.places.unwind(g)
	x.waiting.regard(g, turned)
}

// refute takes a decision back that nobody has been told of.
func (v *activations) refute(g *gang, turned []Turning, last bool, now time.Time) {
	v.letOff(g)
	v.places.unwind(g)
	c := &g.check
	if c.shunned == nil {
		c.shunned, c.mostCut = map[string]string{}, map[string]int{}
	}
	for _, t := range turned {
		c.shunned[t.Node] = t.Why
		if t.Most > 0 {
			c.mostCut[t.Node] = t.Most
		}
	}
	if len(turned) > 0 && !c.until.After(now) {
		c.until = now.Add(firstShun << min(c.tries, mostShuns))
		c.tries++
	}
	c.seen, c.rests = v.waiting.nodes[g.full.Flavor], last
	v.waiting.refuse(g, c.refusal)
	v.waiting.regard(g, turned)
}

// regard has a gang wait that has given places back. They are nothing new to it, unless it gave them back for what has
// happened meanwhile.
func (w *waitlist) regard(g *gang, turned []Turning) {
	g.tried = w.epoch
	if len(turned) == 0 {
		w.wake(g)
	}
}

// forgive forgets which nodes stood in the way of a cut once that is long enough ago or the nodes have changed.
func (v *waitlist) forgive(g *gang, now time.Time) {
	c := &g.check
	changed := c.seen != v.nodes[g.full.Flavor]
	if len(c.shunned) == 0 && !c.rests || !changed && now.Before(c.until) {
		return
	}
	c.shunned, c.mostCut, c.rests, c.until = nil, nil, false, time.Time{}
	if changed {
		c.tries = 0
	}
}

// mostThen returns how many pods nodes take at most, now or with others cut, as far as either is known: a gang that
// they keep from starting now is not promised that it starts now.
func (c *checking) mostThen() map[string]int {
	if len(c.mostCut) == 0 {
		return c.most
	}
	out := maps.Clone(c.mostCut)
	for node, most := range c.most {
		if then, known := out[node]; !known || most < then {
			out[node] = most
		}
	}
	return out
}

// without returns a test for the nodes that are excluded anyway, and those that turned a decision down altogether.
func (c *checking) without(excluded func(node string) bool) func(node string) bool {
	if len(c.shunned) == 0 {
		return excluded
	}
	shunned := maps.Clone(c.shunned)
	maps.DeleteFunc(shunned, func(node, _ string) bool { return c.mostCut[node] > 0 })
	return func(node string) bool { return shunned[node] != "" || excluded != nil && excluded(node) }
}

// asksBeyond reports whether a pod uses scheduling rules that a plan does not know.
func asksBeyond(pod *corev1.Pod) bool { return len(rulesBeyond(pod)) > 0 }

// rulesBeyond names the scheduling rules that a pod uses and a plan does not know: about its volumes and devices, and
// about the pods on this and other nodes.
func rulesBeyond(pod *corev1.Pod) []string {
	var out []string
	local := func(v corev1.Volume) bool {
		return v.ConfigMap != nil || v.Secret != nil || v.EmptyDir != nil || v.Projected != nil || v.DownwardAPI != nil ||
			v.HostPath != nil || v.NFS != nil || v.Image != nil
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return !local(v) }) {
		out = append(out, "volumes")
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		out = append(out, "resource claims")
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil &&
		len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out = append(out, "pod affinity")
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil &&
		len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out = append(out, "pod anti-affinity")
	}
	if slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		out = append(out, "topology spread")
	}
	return out
}

// firstRetry is how long a start rests at first that rules about other pods or volumes have refused: they are asked
// anew for each of its pods. Each time after is twice as long, mostRetries times.
const (
	firstRetry  = 5 * time.Second
	mostRetries = 6
)

// firstShun is how long nodes that turned a decision down are left alone for the first time; each time after is twice
// as long, mostShuns times.
const (
	firstShun = time.Minute
	mostShuns = 5
)
