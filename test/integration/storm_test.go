package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// stormSpan is for how long nodes fail; JOBTREE_SOAK, a duration, has it take longer. About one a second fails of the
	// stormDomains times stormSize that there are. At most stormDown are down at once, and stormSilent of them silent.
	stormSpan               = 10 * time.Second
	stormDomains, stormSize = 3, 7
	stormDown, stormSilent  = 6, 2
)

// storm has nodes of a site fail, flap, be cordoned, and come back, while Runs of every kind are on them.
type storm struct {
	*site
	random *rand.Rand
	// wounds are what has been done to nodes and is to be undone, by node.
	wounds map[string]wound
	// live are the Runs that are to run, by kind; removed those that were deleted.
	live      map[string][]string
	removed   map[string]bool
	submitted int
	tally     map[string]int
}

// wound is what ails a node, until when, and how it is healed, which may take several tries.
type wound struct {
	what  string
	until time.Time
	heal  func() error
}

// stormKinds are the kinds of Runs in a storm, two of each but of calm and sweep. All of them together fit the nodes.
var stormKinds = map[string][]func(*rqv1.Run){
	"calm":    {}, // on nodes that nothing is done to
	"fixed":   {},
	"saved":   {checkpoint(2 * time.Second)},
	"guarded": {inGroups(8), withSpares(4), checkpoint(2 * time.Second)},
	"elastic": {malleable(8, 24, 8), checkpoint(2 * time.Second)},
	"sweep":   {opportunistic},
}

// TestNodeStorm has nodes fail in every way at a rate far above real, under Runs of every kind, and kills the scheduler
// in between. Then no more fail: nothing is held on a lost node. Then all come back: every Run has come to what R27
// says.
func TestNodeStorm(t *testing.T) {
	t.Parallel()
	arguments := led("5s")
	arguments["activationShield"], arguments["nodeLossConditions"] = "2s", []string{brokenGPU}
	arguments["nodeLossLimit"] = "100%" // a fleet this small could lose three at once
	arguments["nodeLossGrace"] = "30s"
	c := ownCluster(t, withoutElection, arguments)
	c.nudgeKwok(t)
	s := newSite(t, c, stormDomains, stormSize, 1000)
	s.addNodes("calm", 2)
	seen := s.observe()
	s.startScheduler()
	st := &storm{site: s, random: seeded(t), wounds: map[string]wound{}, live: map[string][]string{},
		removed: map[string]bool{}, tally: map[string]int{}}
	st.resupply()
	for kind := range stormKinds {
		for _, run := range st.live[kind] {
			s.await(run, rqv1.RunRunning, "")
		}
	}
	st.rage(seen)
	eventually(t, "nothing on lost nodes", func() error { return errors.Join(s.abandoned(), s.verdict(t.Context())) })
	st.healAll()
	err := waitFor(t, "the end of all", 2*patience, func() error { return st.ended() })
	t.Logf("it did %v to nodes, of which %d were lost, and to Runs; %s", st.tally, len(seen.lost), s.outcome())
	if err != nil {
		t.Fatal(err)
	}
	s.settled()
	if wrong := seen.judge(s, st.removed); len(wrong) > 0 {
		t.Errorf("\n  %s", strings.Join(wrong, "\n  "))
	}
}

// nudgeKwok has kwok look again at pods that it has yet to start or to end, until the test is over. Those that it sees
// while it lacks a node's lease it overlooks: the garbage collector takes the lease of a node that is made again, and
// kwok looks at its pods before its cache has the new one. Those of a node that somebody else holds it leaves alone.
func (c *cluster) nudgeKwok(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		var pods corev1.PodList
		if c.api.List(ctx, &pods) != nil {
			return // it may be down, or shut down
		}
		nodes := sets.New[string]()
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Spec.NodeName != "" && (pod.Status.Phase == corev1.PodPending || pod.DeletionTimestamp != nil) {
				nodes.Insert(pod.Spec.NodeName)
			}
		}
		for node := range nodes {
			_ = c.WakePods(ctx, sets.New(node)) // once more in a second, if need be
		}
	}, time.Second)
}

// resupply submits what is missing of each kind.
func (st *storm) resupply() {
	for _, kind := range slices.Sorted(maps.Keys(stormKinds)) {
		st.live[kind] = slices.DeleteFunc(st.live[kind], func(name string) bool {
			run, err := st.get(name)
			return err == nil && run.Status.Phase == rqv1.RunFailed || st.removed[name]
		})
		want, changes := 2, []func(*rqv1.Run){inPods(4)}
		switch kind {
		case "sweep":
			want, changes = 1, []func(*rqv1.Run){inPods(2)}
		case "calm":
			want, changes = 1, append(changes, st.on("calm"))
		}
		for ; len(st.live[kind]) < want; st.submitted++ {
			name := fmt.Sprintf("%s-%d", kind, st.submitted)
			st.submit(name, 16, append(changes, stormKinds[kind]...)...)
			if kind == "calm" {
				st.await(name, rqv1.RunRunning, "") // before others take its nodes
			}
			st.live[kind] = append(st.live[kind], name)
		}
	}
}

// rage does something to nodes and Runs until the storm is over.
func (st *storm) rage(seen *sightings) {
	until, kill := time.Now().Add(soak(stormSpan)), time.Now().Add(5*time.Second)
	for time.Now().Before(until) {
		pause(st.random, 600*time.Millisecond)
		for _, node := range slices.Sorted(maps.Keys(st.wounds)) {
			if w := st.wounds[node]; time.Now().After(w.until) && w.heal() == nil {
				delete(st.wounds, node)
			}
		}
		st.harm()
		if st.random.IntN(8) == 0 {
			st.meddle()
		}
		st.resupply()
		if time.Now().After(kill) {
			kill = time.Now().Add(time.Duration(4+st.random.IntN(8)) * time.Second)
			st.tally["kill"]++
			st.killAfter(time.Duration(st.random.IntN(400)) * time.Millisecond)
		}
		if wrong := seen.broken(); len(wrong) > 0 {
			st.t.Fatalf("\n  %s", strings.Join(wrong, "\n  "))
		}
	}
}

// harm does something to a node that nothing ails, if there are not too many of the others; now and then to several at
// once.
func (st *storm) harm() {
	for many := 1 + st.random.IntN(4)/3; many > 0; many-- {
		at := st.random.IntN(stormDomains * stormSize)
		domain := fmt.Sprintf("d%d", at/stormSize)
		node := st.node(fmt.Sprintf("%s-%d", domain, at%stormSize), domain)
		if _, ails := st.wounds[node.Name]; ails || len(st.wounds) >= stormDown {
			continue
		}
		what := []string{"taint", "taint", "delete", "delete", "condition", "condition", "silence", "silence", "flap",
			"cordon"}[st.random.IntN(10)]
		if what == "silence" && st.ailing(what) == stormSilent {
			what = "flap"
		}
		st.tally[what]++
		lasts := time.Duration(1500+st.random.IntN(5000)) * time.Millisecond
		switch what {
		case "silence":
			lasts += 25 * time.Second
		case "flap":
			lasts /= 4
		}
		st.wounds[node.Name] = wound{what, time.Now().Add(lasts), st.inflict(what, node)}
	}
}

// ailing counts the nodes that something ails.
func (st *storm) ailing(what string) (n int) {
	for _, w := range st.wounds {
		if w.what == what {
			n++
		}
	}
	return n
}

// inflict does something to a node, and returns how it is healed.
func (st *storm) inflict(what string, node *corev1.Node) (heal func() error) {
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	forsaken := false
	switch what {
	case "taint":
		st.strike(node.Name)
	case "delete":
		st.delete(bare)
		return func() error { return st.api.Create(st.t.Context(), node) }
	case "condition":
		st.broken(bare, corev1.ConditionTrue)
	case "silence", "flap":
		st.silence(node.Name)
	case "cordon":
		edit(st.site, bare, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	}
	return func() error {
		switch {
		case what == "condition":
			st.broken(bare, corev1.ConditionFalse)
		case what != "silence" && what != "flap":
		case !forsaken:
			st.forsake(node.Name)
			forsaken = true
			fallthrough
		default:
			if err := st.WakePods(st.t.Context(), sets.New(node.Name)); err != nil {
				return err
			}
		}
		st.uncordon(bare)
		return nil
	}
}

// broken sets the condition of a node that tells of a broken GPU.
func (s *site) broken(node *corev1.Node, status corev1.ConditionStatus) {
	eventually(s.t, "setting a condition", func() error {
		if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == brokenGPU
		})
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: brokenGPU, Status: status,
			Reason: "XID", Message: "XID 79"})
		return s.api.Status().Update(s.t.Context(), node)
	})
}

// uncordon is what a person does with a node that is well again.
func (s *site) uncordon(node *corev1.Node) {
	edit(s, node, func(n *corev1.Node) {
		n.Spec.Unschedulable = false
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeOutOfService
		})
	})
}

// healAll heals all nodes, also those that were found to be lost though they only flapped.
func (st *storm) healAll() {
	for _, node := range slices.Sorted(maps.Keys(st.wounds)) {
		eventually(st.t, "healing "+node, st.wounds[node].heal)
	}
	for at := range stormDomains * stormSize {
		st.uncordon(st.node(fmt.Sprintf("d%d-%d", at/stormSize, at%stormSize), ""))
	}
}

// meddle is what users do: they change the width of a Run, or delete one.
func (st *storm) meddle() {
	kind := []string{"elastic", "elastic", "fixed", "saved", "guarded", "sweep"}[st.random.IntN(6)]
	name := st.live[kind][st.random.IntN(len(st.live[kind]))]
	if kind == "elastic" {
		st.tally["desire"]++
		desired := 8 * int32(1+st.random.IntN(3))
		edit(st.site, st.run(name, 1), func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = &desired })
		return
	}
	st.tally["remove"]++
	st.removeRun(name)
	st.removed[name] = true
}

// ended tells which Runs have not come to what R27 says: with all nodes back, those that do not run have failed for a
// node that was lost and had no checkpoint.
func (st *storm) ended() error {
	st.resupply()
	w, err := st.look(st.t.Context())
	if err != nil {
		return err
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(w.runs)) {
		run := w.runs[name]
		saved := run.Spec.Runtime != nil && run.Spec.Runtime.Checkpoint != nil
		switch m, width := run.Spec.Malleable, run.Status.Width; {
		case run.Status.Phase == rqv1.RunFailed && !saved && !run.Spec.Opportunistic &&
			(strings.Contains(run.Status.Message, "could not be replaced") ||
				strings.Contains(run.Status.Message, "cut by lottery")):
		case run.Status.Phase != rqv1.RunRunning:
			left = append(left, fmt.Sprintf("%s %s: %s", name, run.Status.Phase, run.Status.Message))
		case m != nil && (width.Granted != width.Desired || width.Growing != 0 || width.Allocated != width.Granted):
			left = append(left, fmt.Sprintf("%s has the width %+v", name, *width))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d Runs are not as they should be:\n  %s", len(left), strings.Join(left, "\n  "))
	}
	return nil
}
