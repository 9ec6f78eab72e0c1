package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// soakKills is how often the scheduler is killed under a mixed load. JOBTREE_SOAK, a duration, has it go on for so
	// long instead: about a thousand kills an hour.
	soakKills       = 4
	soakKillsARound = 4
)

// mixture is a load of everything that the scheduler does at once, at a scheduler that is killed again and again.
type mixture struct {
	*site
	random *rand.Rand
	seen   *sightings
	rounds int
	killed int
	torn   int
	// gangs are the Runs of a round that people have submitted, and theirs what they have brought otherwise; removed are
	// all those of earlier rounds, and struck the nodes that are out of service.
	gangs   []string
	theirs  []brought
	removed map[string]bool
	struck  []string
}

// enduring are the Runs that outlive all rounds. Each declares a checkpoint, so that whatever ends it, it runs again.
var enduring = map[string][]func(*rqv1.Run){
	"elastic": {inPods(4), malleable(8, 24, 4), checkpoint(time.Second)},
	"guarded": {inPods(4), inGroups(8), withSpares(4), checkpoint(time.Second)},
	"sweep":   {inPods(2), opportunistic},
}

// TestKillsUnderAMixedLoad kills the scheduler at random moments while Runs start, grow and shrink, are cut for others,
// lose nodes and are swapped, Jobs, JobSets, pods and groups of pods come and go as they are, and so do shards, and
// Leases are settled. After each round all comes to rest: nothing is partial, double, orphaned or unexplained, and
// everybody runs who fits.
func TestKillsUnderAMixedLoad(t *testing.T) {
	t.Parallel()
	arguments := led("2s")
	arguments["gangDeadline"], arguments["ledgerRetention"] = "10s", "5s"
	s := newSite(t, jobSetCluster(t, withoutElection, arguments), 4, 4, 1000)
	m := &mixture{site: s, random: seeded(t), seen: s.observe(), removed: map[string]bool{}}
	s.startScheduler()
	s.spends()
	for name, changes := range enduring {
		s.submit(name, 16, changes...)
	}
	for until := time.Now().Add(soak(0)); m.killed < soakKills || time.Now().Before(until); m.rounds++ {
		m.round()
		if m.rounds%25 == 24 {
			t.Logf("%d kills so far", m.killed)
		}
	}
	t.Logf("%d kills in %d rounds, %d of them while something was half done; %s", m.killed, m.rounds, m.torn, s.outcome())
	m.shown()
	if wrong := m.seen.judge(s, m.removed); len(wrong) > 0 {
		t.Errorf("\n  %s", strings.Join(wrong, "\n  "))
	}
}

// round kills the scheduler a few times while something of everything is under way, and has all of it come to rest.
// Every other round asks for more than there is, so that some are cut.
func (m *mixture) round() {
	crowded := m.rounds%2 == 1
	if crowded {
		name := fmt.Sprintf("big-%d", m.rounds)
		m.submit(name, 88, inPods(4), checkpoint(time.Second))
		m.gangs = append(m.gangs, name)
	}
	for kill := range soakKillsARound {
		m.stir(kill)
		m.killed++
		if m.killAfter(time.Duration(m.random.IntN(900)) * time.Millisecond) {
			m.torn++
		}
		if wrong := m.seen.broken(); len(wrong) > 0 {
			m.t.Fatalf("\n  %s", strings.Join(wrong, "\n  "))
		}
	}
	if crowded {
		m.clear()
	}
	m.heal()
	m.rest()
	m.clear()
}

// stir starts, grows, shrinks and hurts something.
func (m *mixture) stir(kill int) {
	name, size := fmt.Sprintf("gang-%d-%d", m.rounds, kill), []int32{1, 2, 4}[m.random.IntN(3)]
	m.submit(name, 8, inPods(size), checkpoint(time.Second))
	m.gangs = append(m.gangs, name)
	m.theirs = append(m.theirs, m.bring(fmt.Sprintf("theirs-%d-%d", m.rounds, kill)))
	desired := 8 + 4*m.random.Int32N(5)
	edit(m.site, m.run("elastic", 1), func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = &desired })
	if kill == 2 {
		m.deleteOne()
	}
	if kill != 1 {
		return
	}
	w, err := m.look(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	brittle := map[string]bool{}
	for i := range w.leases {
		l := &w.leases[i]
		brittle[l.Node()] = brittle[l.Node()] || !l.Status.Closed && m.isBrittle(l.Spec.RunRef.Name)
	}
	held := slices.DeleteFunc(w.leases, func(l rqv1.Lease) bool {
		return l.Status.Closed || l.Spec.Slice.Role != rqv1.RoleActive || brittle[l.Node()]
	})
	if len(held) > 0 {
		node := held[m.random.IntN(len(held))].Spec.Slice.Nodes[0].Name
		m.strike(node)
		m.struck = append(m.struck, node)
	}
}

// heal gives the nodes back.
func (m *mixture) heal() {
	for _, node := range m.struck {
		m.uncordon(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	}
	m.struck = nil
}

// clear deletes the Runs of the round.
func (m *mixture) clear() {
	for _, gang := range m.gangs {
		m.removeRun(gang)
		m.removed[gang] = true
	}
	for _, b := range m.theirs {
		m.takeAway(b)
		m.removed[b.run] = true
		m.gangs = append(m.gangs, b.run)
	}
	m.awaitGone(m.gangs...)
	m.gangs, m.theirs = nil, nil
}

// rest waits until every invariant holds and everybody runs at the width that they desire: all of them fit.
func (m *mixture) rest() {
	m.t.Helper()
	eventually(m.t, fmt.Sprintf("rest after round %d", m.rounds), func() error {
		w, err := m.look(m.t.Context())
		if err != nil {
			return err
		}
		var left []error
		for name, run := range w.runs {
			if err := is(&run, rqv1.RunRunning, ""); err != nil {
				left = append(left, fmt.Errorf("%s: %w", name, err))
			} else if width := run.Status.Width; width != nil && (width.Growing != 0 || !run.Spec.Opportunistic &&
				width.Granted != width.Desired) {
				left = append(left, fmt.Errorf("%s has the width %+v", name, *width))
			}
		}
		return errors.Join(append(left, m.verdict(m.t.Context()))...)
	})
}

// shown fails the test if it has not shown what it is for. Everything happens to a soak; to a few rounds, whose chances
// are drawn anew each time, not all of it has to.
func (m *mixture) shown() {
	m.t.Helper()
	w, err := m.look(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	happened := map[string]int{"a kill in the middle of something": m.torn}
	for _, reason := range []rqv1.ClosureReason{rqv1.ClosedShrink, rqv1.ClosedNodeFailure, rqv1.ClosedRandomPreempt} {
		happened["a Lease closed as "+string(reason)] = 0
	}
	for i := range w.leases {
		happened["a Lease closed as "+string(w.leases[i].Status.ClosureReason)]++
		happened["a Lease opened for "+string(w.leases[i].Spec.Reason)]++
	}
	for _, what := range []string{"a kill in the middle of something", "a Lease closed as Shrink",
		"a Lease closed as NodeFailure",
		"a Lease closed as RandomPreempt", "a Lease opened for Grow", "a Lease opened for Swap"} {
		switch {
		case happened[what] > 0:
		case isSoak() || m.torn == 0:
			m.t.Errorf("there was not once %s: the test has shown nothing of it", what)
		default:
			m.t.Logf("there was not once %s", what)
		}
	}
}
