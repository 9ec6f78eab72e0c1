package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// guardedAfter is how long a Run runs before its ranks are guarded against evictions: most are short, and cost no write
// more.
const guardedAfter = time.Minute

// redrain is how long until it is looked at again whether a rank has somewhere to go: others come and go meanwhile.
const redrain = 5 * time.Second

// guard is the PodDisruptionBudget of a Run, as it is to be.
type guard struct {
	// wanted is nil for a Run that is to have none, and stale says that its own is not like that. unwanted is one that is
	// to go.
	wanted, unwanted *policyv1.PodDisruptionBudget
	stale            bool
	// lowered says that it lets somebody evict a rank.
	lowered bool
	// after is when that may be otherwise although nothing happens; 0 for never.
	after time.Duration
}

// guardOf returns how a Run's ranks are to be guarded: as many as it has are to be available, and one less while one is
// asked to move, none is moving or leaves by itself, and whichever of them is the first has a place to go to.
func guardOf(s *situation) guard {
	f := s.facts
	own := f.ownGuard()
	started, runs := f.Run.StartedAt()
	if s.phase != rqv1.RunRunning || !runs || f.opportunistic() || f.Shape != nil {
		if s.hasEnded() {
			return guard{unwanted: own}
		}
		return guard{}
	}
	if f.userGuards() || f.theirs() {
		return guard{unwanted: own}
	}
	if left := started.Add(guardedAfter).Sub(f.Now); left > 0 && own == nil {
		return guard{after: left}
	}
	least := 0
	for _, pod := range s.roster.core() {
		if pod == nil || pod.Status.Phase != corev1.PodSucceeded {
			least++
		}
	}
	g := guard{}
	if d := &f.Drain; len(d.Ranks) > 0 {
		g.after = redrain
		g.lowered = d.Why == "" && !d.Asking && len(d.Leave) == 0 && !d.Moving && everyRankRuns(s)
	}
	if g.lowered {
		least--
	}
	g.wanted = guardFor(f.Run, least)
	if own != nil {
		g.wanted.UID = own.UID
	}
	g.stale = own == nil || !guardsAlike(&own.Spec, &g.wanted.Spec)
	return g
}

// everyRankRuns reports whether every rank is where it is to be, or has done its work: nothing of an earlier move is
// left to be done.
func everyRankRuns(s *situation) bool {
	return !slices.ContainsFunc(s.roster.core(), func(pod *corev1.Pod) bool {
		switch {
		case pod == nil:
			return true
		case pod.Status.Phase == corev1.PodSucceeded:
			return false
		}
		return !present(pod) || !bound(pod) || !s.facts.runs(pod)
	})
}

func guardFor(run *rqv1.Run, least int) *policyv1.PodDisruptionBudget {
	available := intstr.FromInt32(int32(least))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: run.Name,
			Labels:          map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID)},
			OwnerReferences: []metav1.OwnerReference{ownerOf(run)}},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &available,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				rqv1.LabelRunUID: string(run.UID), rqv1.LabelRole: string(rqv1.RoleActive)}}},
	}
}

// guardsAlike compares what of PodDisruptionBudgets says how many of which pods may be evicted. When pods that are not
// ready may be is everybody's to say: clusters have policies that write it into all of them.
func guardsAlike(a, b *policyv1.PodDisruptionBudgetSpec) bool {
	return equality.Semantic.DeepEqual(a.MinAvailable, b.MinAvailable) &&
		equality.Semantic.DeepEqual(a.MaxUnavailable, b.MaxUnavailable) &&
		equality.Semantic.DeepEqual(a.Selector, b.Selector)
}

// ownGuard returns the PodDisruptionBudget that was made for the Run; nil when there is none.
func (f *facts) ownGuard() *policyv1.PodDisruptionBudget {
	for _, b := range f.Guards {
		if of, ours := rank.RunOf(b); ours && of == f.Run.UID && b.Name == f.Run.Name {
			return b
		}
	}
	return nil
}

// setDrainWaits says which ranks of the Run cannot leave their nodes, which are being emptied, and why.
func setDrainWaits(c conditions, s *situation) {
	var waits *saying
	d := &s.facts.Drain
	if why := notReady(s); len(d.Ranks) > 0 && (d.Why != "" || why != nil) {
		switch {
		case d.Lapsed:
			why = cmp.Or(unready(s), &saying{"NotEvicted", d.Why}) // nobody could
		case d.Why != "":
			why = &saying{"NowhereToMove", d.Why}
		}
		waits = &saying{why.reason, fmt.Sprintf("the drain of %s waits: %s", namedNodes(nodesIn(d.Ranks)), why.message)}
	}
	c.raise(rqv1.ConditionDrainWaits, waits, saying{"NoneWaits", "no drain of the Run's nodes waits for room"})
}

// nodesIn returns the nodes of some ranks, in order.
func nodesIn(ranks []book.DrainedRank) (nodes []string) {
	for _, r := range ranks {
		nodes = append(nodes, r.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// notReady says which ranks are not ready, so that the Run's PodDisruptionBudget lets nobody evict one although that
// has a place; nil when it does. It counts the ranks that are ready, and lets one go that is not if all others are.
func notReady(s *situation) *saying {
	if !s.guard.lowered {
		return nil
	}
	return unready(s)
}

// unready says likewise which ranks would keep everybody from it.
func unready(s *situation) *saying {
	if s.guard.wanted == nil {
		return nil
	}
	var ranks []string
	drained := true
	for index, pod := range s.roster.core() {
		if ready, _ := rank.ReadySince(pod); ready || pod != nil && pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		ranks = append(ranks, strconv.Itoa(index))
		drained = slices.ContainsFunc(s.facts.Drain.Ranks, func(r book.DrainedRank) bool { return r.Index == index })
	}
	if len(ranks) == 0 || len(ranks) == 1 && drained {
		return nil
	}
	what := "rank " + ranks[0] + " is"
	if len(ranks) > 1 {
		what = "ranks " + namedNodes(ranks) + " are"
	}
	return &saying{"RanksNotReady", what + " not ready, and the Run's PodDisruptionBudget allows no eviction until all " +
		"other ranks are ready"}
}
