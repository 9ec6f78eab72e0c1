package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// AskRules has what is decided be checked with other scheduling rules from now on, by whoever has it decided.
func (b *Book) AskRules() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes.asks = true
}

// Check returns what is to be checked of the gang of a Run; nil when nothing is. Whoever is given one concludes it.
func (b *Book) Check(run types.UID, now time.Time) *Check {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || !g.check.pending {
		return nil
	}
	c := &Check{Run: run, Leaving: map[string][]types.UID{}, Cuts: g.activation != nil,
		epoch: b.waiting.epoch, asked: g.check.asked}
	c.Seats = g.asksForSeats()
	if c.Seats {
		b.places.seatsToAsk(g, c)
		return c
	}
	for _, m := range g.asTheyCome() {
		if m.stage == assigned && (m.belated() || !m.extra()) {
			c.Places, c.ranks = append(c.Places, Place{m.pod, m.node}), append(c.ranks, m.part)
			c.seated = append(c.seated, b.seats.held[m.pod.UID].seated)
		}
	}
	for uid, h := range b.seats.waitedFor {
		if slices.Contains(h.awaitedBy, g) {
			c.Leaving[h.node] = append(c.Leaving[h.node], uid)
		}
	}
	c.Made, c.Accepted, c.Tries = g.check.again, g.check.knownOf(c.Places), g.check.hasty
	b.places.shardsToAsk(c)
	for name, node := range b.nodes.ofFlavor[g.full.Flavor] {
		if b.nodes.serves(node) {
			c.Serving = append(c.Serving, name)
		}
	}
	slices.Sort(c.Serving)
	c.Spots = b.spotsOf(g, c, now)
	for _, name := range c.Serving {
		if !g.shuns(name) && (c.Cuts || b.fleet.Free(name) >= g.full.GPUsPerPod) {
			c.Nodes = append(c.Nodes, name)
		}
	}
	return c
}

// Conclude notes what other rules say of what the gang of a check has been given: the nodes that turn its pods down, or
// none when all accept them. What they turn down is taken back, and may be planned again without those nodes. Where
// they stand in the way of a cut they are left alone for a while, the longer the more often that has happened; the last
// of several attempts has nobody be cut for the gang meanwhile. The last attempt at a start goes on whatever they say,
// and they are not asked about the next. What has changed since the rules were asked is taken back as well, and asked
// about anew. Shards leave for what stands.
func (b *Book) Conclude(c *Check, turned []Turning, last bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.concluded(c)
	if g == nil {
		return
	}
	if c.Seats && g.run != nil {
		b.places.concludeSeats(g, c, turned)
		return
	}
	stands := b.places.stand(c.Places) && (len(c.Places) > 0 || g.activation == nil)
	switch {
	case g.run == nil: // it has been deleted meanwhile
	case stands && len(turned) == 0 && g.activation != nil && g.awaitsPods():
		g.check.again = true // they may differ from those that rules were asked about
	case stands && len(turned) == 0:
		if g.started() && g.firstRank() != nil {
			g.check.served() // what nodes have said holds for those that have no place yet
		} else {
			g.forgetChecks()
		}
		b.places.makeRoom(g)
		b.starts.tellTaken(g)
		b.turns.goOn(g, c)
	case stands && last && g.activation == nil && len(b.cuts.forRanks[g]) == 0:
		g.check.again = false
		g.check.trust(now)
		b.places.makeRoom(g)
		b.turns.goOn(g, c)
	case g.activation == nil:
		b.starts.refute(g, c, turned, now)
	default:
		b.turns.refute(g, c, turned, last, now)
	}
}

// goOn lets a gang into the queue about whose places rules have been asked once more, if nobody is to leave them.
func (v *activations) goOn(g *gang, c *Check) {
	if c.Made && g.activation == nil && g.awaiting == 0 {
		v.waiting.proceed(g)
	}
}

// Interrupt notes that it takes longer to find out what other rules say of a check for which others are cut: some nodes
// have turned pods down, or else the first so many places have been accepted. Nobody is told before rules are asked
// about the rest, in a later cycle of the pod.
func (b *Book) Interrupt(c *Check, turned []Turning, accepted int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.concluded(c)
	switch {
	case g == nil || g.run == nil || g.activation == nil:
	case len(turned) > 0 || !b.places.stand(c.Places) || len(c.Places) == 0:
		b.turns.refute(g, c, turned, false, now)
	default:
		g.check.again, g.check.passed = true, c.Places[:accepted]
		g.check.hasty++
	}
}

// concluded returns the gang of a check that is being concluded; nil where that is not asked for any more.
func (b *Book) concluded(c *Check) *gang {
	g := b.roster.gangs[c.Run]
	if g == nil || !g.check.pending || g.check.asked != c.asked {
		return nil
	}
	g.check.pending = false
	if g.run != nil {
		b.mail.reconcile(keyOf(g.run), lane.Cut) // it was not looked at meanwhile
	}
	return g
}

// stand reports whether pods still have the places that they were given.
func (p *placement) stand(places []Place) bool {
	return !slices.ContainsFunc(places, func(place Place) bool {
		m := p.roster.members[place.Pod.UID]
		return m == nil || m.node != place.Node || !m.placed()
	})
}

// refute takes a start back. What a node says for where the others are is no fact about it where these can be
// elsewhere.
func (x *starter) refute(g *gang, asked *Check, turned []Turning, now time.Time) {
	c := &g.check
	lays, instead := c.lay(asked)
	g.heedInstead(&g.turnings, instead)
	few, postponed := g.isOfFewKinds(), asked.Unlaid && c.postpone(now)
	for _, t := range c.learn(asked, turned) {
		if t.Skewed && postponed {
			continue
		}
		t.Most = x.mostBut(g, t)
		if few && x.seats.roster.turnsItsKind(asked, turned, t) {
			t.Most = -1
		}
		if t.Skewed {
			c.skew(&t)
		}
		if t.Skewed && lays {
			c.laid.instead = append(c.laid.instead, t)
			continue
		}
		m := x.seats.roster.members[t.Pod]
		g.heed(t, m, few)
		if m != nil && t.Most < 0 {
			g.spurn(m, t.Node)
		}
	}
	x.places.unwind(g)
	x.places.releaseBelated(asked.Places)
	x.leaveFull(g)
	g.check.again = false
	if g.check.refusal != nil { // it was to have what others are leaving
		again := *g.check.refusal
		if rejection := x.nodes.rejection(g, nil, now); again.Rejected == nil && rejection != nil {
			rejection.Rest = g.check.retryRest()
			x.nodes.sayWithout(&again, rejection, g)
		}
		x.waiting.refuse(g, &again)
	}
	x.waiting.regard(g, turned)
}

// mostBut returns how many pods a plan may put on a node that has turned one down, fewer than it did, beside those that
// take the places of spares there, which it does not put anywhere. It is negative where the node is to be left alone.
func (x *starter) mostBut(g *gang, t Turning) int {
	seats, itself := 0, false
	for _, m := range g.active.members {
		if m != nil && m.stage == assigned && m.node == t.Node && x.seats.held[m.pod.UID].seated {
			seats++
			itself = itself || m.pod.UID == t.Pod
		}
	}
	switch {
	case itself:
		return max(-1, t.Most-seats)
	case t.Most == 0 && seats == 0:
		return -1
	}
	return max(0, t.Most-seats)
}

// refute takes a decision back that nobody has been told of, likewise.
func (v *activations) refute(g *gang, asked *Check, turned []Turning, last bool, now time.Time) {
	v.letOff(g)
	v.places.unwind(g)
	c := &g.check
	lays, instead := c.lay(asked)
	few := g.isOfFewKinds()
	g.heedInstead(&c.cuts, instead)
	for _, t := range c.learn(asked, turned) {
		if t.Most == 0 || few && v.roster.turnsItsKind(asked, turned, t) {
			t.Most = -1
		}
		if t.Skewed {
			c.skew(&t)
		}
		switch {
		case t.Skewed && lays:
			c.laid.instead = append(c.laid.instead, t)
		case asked.Unsure, asked.Unlaid && t.Skewed:
			c.cuts.mention(t)
		default:
			c.cuts.heed(t, v.roster.members[t.Pod], few)
		}
	}
	c.seen, c.rests = v.waiting.nodes[g.full.Flavor], last
	switch {
	case asked.Doubtful(turned):
		c.rests = false
		c.doubt(now)
	case len(turned) == 0 && !last:
	case c.until.After(now):
		c.sooner(turned, now)
	default:
		c.shun(now)
	}
	if !asked.Unsure && !asked.Unlaid {
		c.vague = 0
	}
	v.waiting.refuse(g, c.refusal)
	v.waiting.regard(g, turned)
}

// Doubtful reports whether nothing is known that a decision could go by instead of what has been asked about.
func (c *Check) Doubtful(turned []Turning) bool {
	return c.Unsure || c.Unlaid && !slices.ContainsFunc(turned, func(t Turning) bool { return !t.Skewed })
}

// regard has a gang wait that has given places back. They are nothing new to it, unless it gave them back for what has
// happened meanwhile.
func (w *waitlist) regard(g *gang, turned []Turning) {
	g.tried = w.epoch
	if len(turned) == 0 {
		w.wake(g)
	}
}
