package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
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
	// Serving are all nodes of its type that serve: what its pods share may be bound to reach any of them.
	Serving []string
	// Made says that the pods have been made since rules were asked about such as they would be, or while there was no
	// time to ask about all. Of the places the first so many have been accepted then: Accepted. Tries is how often there
	// was no time.
	Made            bool
	Accepted, Tries int
	// Unsure says of what is concluded that it could not be found out, and Unlaid that it could not where the pods would
	// be spread: what nodes have said, or have of where others are, is no fact about them.
	Unsure, Unlaid bool
	// Spots are the nodes over which a gang may spread its pods, by name; nil where no rule has them spread. Spread is on
	// which of them the rules would have the pods of Places, if not there, and Cleared where a start could be once others
	// have been cut for it, if it cannot without that: whoever asks arranges that.
	Spots           map[string]Spot
	Spread, Cleared []string
	// ranks are those of Places, and scopes which of these must lie in one domain together; nil where none must. domains
	// has those that others of theirs are in.
	ranks   []rank.Part
	seated  []bool // whether they are in the places of spares
	scopes  []int
	domains map[int]string
	// epoch is that of the nodes as they are.
	epoch int64
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
	// Shared says that it did for what others of the gang would have bound elsewhere that the pod uses too, such as a
	// volume, and Skewed for how many pods are on nodes that are like it.
	Shared, Skewed bool
}

// checking is what a gang has been told by other scheduling rules that were asked.
type checking struct {
	question
	// refusal is why the gang was refused before.
	refusal *plan.Refusal
	// cuts are what nodes have said that turned down a decision to cut, until an instant, or until the nodes of its type
	// have changed since.
	cuts  turnings
	until time.Time
	seen  int64
	tries int
	// moved are the nodes that turned the gang down for where others are, since when pods have left nodes: that counts
	// from soonest on.
	moved   map[string]bool
	soonest time.Time
	// laid is where pods that are to be spread are to be for the next plan; nil where the rules have not been asked. A
	// start that no plan has lie so is in vain then, until something has changed, and so is a decision.
	laid   *layout
	inVain map[bool]bool // of decisions to cut, and of starts
	drops  int           // how often it was dropped because nodes had changed
	// skewed are the nodes that turned the gang down for where the others are.
	skewed map[string]bool
	// reaches are those that are known of what the gang's pods share, in the order in which they were found.
	reaches []reach
	// fails is how often a start has been tried again in vain since the rules last accepted one, or nodes that turned it
	// down changed.
	fails int
	// rests says that nobody is cut for the gang until then.
	rests bool
	// again says that rules are to be asked once more about a decision to cut before it is published, or about the places
	// that the gang has since it was. The first places have been accepted if they are as in passed, and hasty counts how
	// often there was no time to ask about all.
	again  bool
	passed []Place
	hasty  int
	// vague is how often in a row it could not be found out what the rules say, and unasked until when they are not asked
	// about another start. Nor is one made until resumes, of whose pods it is not known where they could be spread; putOff
	// is how often. Nobody is cut for the gang until clear, of whom it is not known what the rules say.
	vague, putOff           int
	unasked, resumes, clear time.Time
}

// ask notes that rules are to be asked about what the gang has just been given, and why it was refused before.
func (c *checking) ask(before *plan.Refusal) {
	c.refusal = before
	c.question.ask()
}

// forgetChecks has what other rules have said of how a gang may lie, and of cuts for it, not count any more.
func (g *gang) forgetChecks() {
	g.check = checking{question: question{asked: g.check.asked}}
	g.unbound()
}

// open reports whether rules are being asked, or are to be asked once more, about what the gang has been given.
func (c *checking) open() bool { return c.pending || c.again }

// unsure reports whether rules are to be asked once more about the places of a gang for which others are cut: all of
// its pods are there.
func (g *gang) unsure() bool { return g.check.again && !g.awaitsPods() && g.activates() }

// reasks reports whether that is to happen in a member's cycle.
func (g *gang) reasks(m *member) bool { return g.unsure() && m == g.active.memberAt(0) }

// knownOf returns how many of some places have been accepted already.
func (c *checking) knownOf(places []Place) int {
	n := 0
	for n < min(len(places), len(c.passed)) && places[n].Pod.UID == c.passed[n].Pod.UID &&
		places[n].Node == c.passed[n].Node {
		n++
	}
	return n
}

// retryRest returns how long a start rests that rules about other pods or volumes have refused.
func (c *checking) retryRest() time.Duration { return firstRetry << min(c.fails, mostRetries) }

// trust has rules not be asked about starts for a while, the longer the more often it could not be found out in time
// what they say: the pods' own cycles find it out.
func (c *checking) trust(now time.Time) {
	c.unasked, c.laid = now.Add(firstRetry<<min(c.vague, mostRetries)), nil
	c.vague++
}

// mostThen returns how many pods nodes take at most for a decision to cut: as far as is known of either, and no more
// than are to be there where the pods are spread.
func (g *gang) mostThen() map[string]int {
	l, said := g.check.laidFor(true), g.mostSaid()
	if l == nil {
		return said
	}
	if l.early {
		said = fewest(g.check.elsewhere(g.upTo), g.check.cuts.upTo)
	}
	return fewest(said, l.most)
}

// mostSaid returns how many pods nodes take at most, now or with others cut, as far as either is known: a gang that
// they keep from starting now is not promised that it starts now.
func (g *gang) mostSaid() map[string]int { return fewest(g.upTo, g.check.cuts.upTo) }

// fewest returns the least of two bounds of each node.
func fewest(x, y map[string]int) map[string]int {
	if len(y) == 0 {
		return x
	}
	out := maps.Clone(y)
	for node, most := range x {
		if then, known := out[node]; !known || most < then {
			out[node] = most
		}
	}
	return out
}

// without returns a test for the nodes that are excluded anyway, and those that turned a decision down altogether,
// whichever of the gang's pods it was about.
func (c *checking) without(excluded func(node string) bool) func(node string) bool {
	if len(c.cuts.excluded) == 0 {
		return excluded
	}
	shunned := maps.Clone(c.cuts.excluded)
	return func(node string) bool { return shunned[node] != "" || excluded != nil && excluded(node) }
}

// forgive forgets which nodes stood in the way of a cut once that is long enough ago or the nodes have changed. After
// the last of several attempts it is time alone that counts: nodes may change all the time. Where they did for where
// others are that is sooner, once any of these have moved. What has been laid out is of the nodes as they were.
func (v *waitlist) forgive(g *gang, now time.Time) {
	c := &g.check
	if len(c.skewed) > 0 && v.leftSince(g) {
		c.move()
	}
	changed, over := c.seen != v.nodes[g.full.Flavor] && !c.rests, !now.Before(c.until)
	moved := len(c.moved) > 0 && !now.Before(c.soonest)
	doubted := c.until.Equal(c.clear) // nothing is said against what has been laid out
	switch {
	case c.until.IsZero():
		c.moved = nil
		return
	case changed, over:
		c.cuts, c.reaches, c.rests, c.until, c.moved = turnings{}, nil, false, time.Time{}, nil
	case moved:
		c.cuts.forget(func(node string) bool { return c.moved[node] })
		c.rests, c.moved = false, nil
	default:
		return
	}
	if changed {
		c.tries = 0
	}
	clear(c.inVain)
	l := c.laidFor(true)
	switch {
	case l == nil || g.activates():
	case over && !doubted || moved:
		c.laid = nil
	case v.altered[g.full.Flavor] > l.at && c.drops < mostDrops:
		c.laid = nil
		c.drops++
	}
}

// move notes that pods have left nodes since some turned the gang down for where others are.
func (c *checking) move() {
	if c.moved == nil {
		c.moved = map[string]bool{}
	}
	maps.Copy(c.moved, c.skewed)
}

// rest returns how long what nodes have said of a decision to cut counts.
func (c *checking) rest(now time.Time) time.Duration {
	if len(c.moved) > 0 && c.soonest.Before(c.until) {
		return c.soonest.Sub(now)
	}
	return c.until.Sub(now)
}

// doubt has nobody be cut for the gang for a time, the longer the more often in a row it could not be found out what
// rules say, and as long as nodes may change.
func (c *checking) doubt(now time.Time) {
	c.clear = now.Add(firstRetry << min(c.vague, mostRetries))
	if c.until.IsZero() {
		c.until, c.soonest = c.clear, c.clear
	}
	c.vague++
	c.hasty++
}

// postpone has a start wait a few seconds of whose pods there was no time to find out where they could be spread, and
// reports whether it is to: there is more time the next time, until there is the most.
func (c *checking) postpone(now time.Time) bool {
	if c.putOff >= mostHasty {
		return false
	}
	c.resumes = now.Add(firstRetry)
	c.putOff++
	c.hasty++
	return true
}

// shun has what nodes have said of a decision to cut count for a time, the longer the more often they did; sooner not
// any more where they said it for where others are.
func (c *checking) shun(now time.Time) {
	c.until = now.Add(firstShun << min(c.tries, mostShuns))
	c.soonest = now.Add(firstRetry << min(c.tries, mostRetries))
	c.tries++
}

// sooner has nodes that turn a decision down once more for where the others are be asked about it again later than the
// last time.
func (c *checking) sooner(turned []Turning, now time.Time) {
	if !now.Before(c.soonest) && slices.ContainsFunc(turned, func(t Turning) bool { return t.Skewed }) {
		c.soonest = now.Add(firstRetry << min(c.tries, mostRetries))
		c.tries++
	}
}

// shuns reports whether a node is left alone because it turned down a start of the gang, or a decision to cut for it.
func (g *gang) shuns(node string) bool {
	c := &g.check.cuts
	return g.excluded[node] != "" || c.excluded[node] != "" || c.why[node] != ""
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
	if len(SpreadKeys(pod)) > 0 {
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

// mostDrops is how often what has been laid out is dropped because nodes have changed: they may change all the time.
const mostDrops = 5

// mostHasty is how often a start is put off for want of time: whoever asks takes no longer after that.
const mostHasty = 3

// firstShun is how long nodes that turned a decision down are left alone for the first time; each time after is twice
// as long, mostShuns times.
const (
	firstShun = time.Minute
	mostShuns = 5
)
