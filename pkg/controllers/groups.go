package controllers

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// groupWorkers is how many groups are looked at at a time.
const groupWorkers = 8

// groups follows the pods that no Run made, and makes the Runs that stand for their groups (R40, R41).
type groups struct {
	groupReader
	book    *book.Book
	clock   clock.Clock
	events  events.EventRecorder
	watches *watches
	// changed has a Run looked at.
	changed func(types.NamespacedName, lane.Work)
	line    *groupLine
	// decides says that groups are looked at: until then those that are over are forgotten as they go.
	decides atomic.Bool

	mu    sync.Mutex
	known map[group.Key]*pods
	// wait is how many of them have pods that wait.
	wait int
	// at are the groups of the pods that wait: pods may come to say that they are in another.
	at map[types.UID]group.Key
	// unseen are the groups of the pods that are ranked there.
	unseen map[types.UID]group.Key
	// succeeds are the groups of the pods that are groups of one by what they say, and take the place of others.
	succeeds map[types.UID]group.Key
	makers   map[makerID]*maker // the controllers of such
	lasting  lasting
}

// pods are those of a group.
type pods struct {
	// waiting have no rank, by UID.
	waiting map[types.UID]*corev1.Pod
	// ranked have been given ranks that the informer of ranks may not have told of yet, by UID, with their keys in its
	// cache.
	ranked map[types.UID]string
	// payers are the service accounts whose pods may have ranks in Run payersOf.
	payers   map[string]bool
	payersOf types.UID
	// apart says of those that wait, if they may by that alone, whether a JobSet has made them.
	apart map[types.UID]ofASet
	// shape is what is known of the group; seen says that it is.
	shape group.Shape
	seen  bool
	// past says that the Run which stands for the group is complete, and that those that wait are for another.
	past bool
	// maker is the controller that makes the pods of a group of one, as its Run says that has not ended.
	maker makerID
	// run stands for the group, phase is what that had come to when the group was looked at last, and started says that it
	// has run.
	run     types.UID
	phase   rqv1.RunPhase
	started bool
	// said is what the Run said then.
	said string
	// waits is what is waited for before there is a Run, and lacking since when it has been that; empty for nothing.
	waits   string
	lacking time.Time
	// empty is since when it has no pods, and idle since when all of them have ended; zero while that is not so.
	empty, idle time.Time
	// looked is when the group was looked at last, and size how many pods it had then.
	looked time.Time
	size   int
	// end is how the group has ended; empty while it has not.
	end rqv1.RunPhase
}

func newGroups(o *Options, w *watches, changed func(types.NamespacedName, lane.Work)) *groups {
	return &groups{groupReader: newGroupReader(o), book: o.Book, clock: o.Clock, events: o.events, watches: w,
		changed: changed, line: newGroupLine(), known: map[group.Key]*pods{}, at: map[types.UID]group.Key{},
		unseen: map[types.UID]group.Key{}, succeeds: map[types.UID]group.Key{}, makers: map[makerID]*maker{}}
}

// follow notes what informers are told of pods and of Runs.
func (g *groups) follow(w *watches, all cache.SharedInformer) error {
	if err := all.SetTransform(trim); err != nil {
		return fmt.Errorf("the informer of pods: %w", err)
	}
	if err := handle(w, all, g.note, g.drop); err != nil {
		return err
	}
	if err := handle(w, w.pods, g.member, g.gone); err != nil {
		return err
	}
	return handle(w, w.runs, g.ran, g.ended)
}

// trim leaves out of the scheduler's pods what nobody reads.
func trim(o any) (any, error) {
	if pod, is := o.(*corev1.Pod); is {
		group.Trim(pod)
	}
	return o, nil
}

// note notes a pod that has not ended.
func (g *groups) note(pod *corev1.Pod) {
	if !group.Candidate(pod) {
		return
	}
	waits := pod.Labels[rqv1.LabelRun] == "" && pod.DeletionTimestamp == nil
	g.mu.Lock()
	key := g.keyOf(pod)
	at, waited := g.at[pod.UID]
	before, was := g.leave(pod, key)
	if waits {
		g.see(pod.UID)
		of := g.of(key)
		g.setWaiting(pod, key, true)
		g.at[pod.UID] = key
		g.waitsFor(pod, true)
		of.seen = of.seen && (was || of.shape.Knows(pod)) // what has begun since may be for another Run
	} else if waited && pod.DeletionTimestamp == nil { // its rank is in the group in which it has waited
		g.of(at).ranked[pod.UID], g.unseen[pod.UID] = pod.Namespace+"/"+pod.Name, at
	}
	g.mu.Unlock()
	if !waits {
		g.book.Forget(pod.UID)
	}
	if waits != was || waits && gated(before) != gated(pod) {
		g.again(key)
	}
}

// leave takes a pod out of those that wait of a group, and returns what was known of it there. A group that it was in
// before is looked at without it. The lock is held.
func (g *groups) leave(pod *corev1.Pod, key group.Key) (before *corev1.Pod, was bool) {
	at, waited := g.at[pod.UID]
	if waited {
		before = g.of(at).waiting[pod.UID]
		g.setWaiting(before, at, false)
		delete(g.at, pod.UID)
		g.waitsFor(before, false)
		g.tidy(at)
	}
	if waited && at != key {
		g.again(at)
	}
	return before, waited && at == key
}

// setWaiting notes that a pod waits in a group, or no more. The lock is held.
func (g *groups) setWaiting(pod *corev1.Pod, key group.Key, waits bool) {
	of := g.of(key)
	if len(of.waiting) > 0 {
		g.wait--
	}
	if waits {
		of.waiting[pod.UID] = pod
	} else {
		delete(of.waiting, pod.UID)
	}
	if len(of.waiting) > 0 {
		g.wait++
	}
}

// see notes that a pod's rank is seen, or that it has none. The lock is held.
func (g *groups) see(uid types.UID) {
	if of := g.known[g.unseen[uid]]; of != nil {
		delete(of.ranked, uid)
	}
	delete(g.unseen, uid)
}

// unseenOf reports whether a pod of a group has been given a rank and is not seen with it. The lock is held.
func (g *groups) unseenOf(of *pods) bool {
	for uid, key := range of.ranked {
		if o, there, err := g.watches.pods.GetStore().GetByKey(key); err != nil || !there || o.(*corev1.Pod).UID != uid {
			return true
		}
		g.see(uid)
	}
	return false
}

// gated reports whether something else is to happen before a pod is placed: no gang waits for it, let alone that others
// end for it. What is to happen may change what it says.
func gated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

// drop notes that a pod has ended, or is gone.
func (g *groups) drop(pod *corev1.Pod) {
	if !group.Candidate(pod) {
		return
	}
	g.mu.Lock()
	key := g.keyOf(pod)
	g.leave(pod, key)
	g.see(pod.UID)
	delete(g.succeeds, pod.UID)
	g.mu.Unlock()
	g.book.Forget(pod.UID)
	g.vacate(key)
	g.again(key)
}

// member notes that something is new of a pod that has a rank.
func (g *groups) member(pod *corev1.Pod) {
	if !group.Candidate(pod) {
		return
	}
	run := g.cachedRun(runOfPod(pod))
	first := run != nil && run.Spec.TheirsComeLate() && run.Status.Phase == rqv1.RunPending && pod.Spec.NodeName != ""
	if rank.Ended(pod) || pod.DeletionTimestamp != nil {
		g.vacate(g.groupOf(pod))
	}
	if first || rank.Ended(pod) {
		g.again(g.groupOf(pod))
	}
}

// gone notes that a pod is gone that had a rank, or has it no more.
func (g *groups) gone(pod *corev1.Pod) {
	if group.Candidate(pod) {
		g.vacate(g.groupOf(pod))
		g.again(g.groupOf(pod))
	}
}

// groupOf returns the group of a pod that has a rank, or had one: the one that its Run stands for. What the pod says
// itself may have changed.
func (g *groups) groupOf(pod *corev1.Pod) group.Key {
	if run := g.cachedRun(runOfPod(pod)); run != nil {
		if key, ok := group.KeyOf(run); ok {
			return key
		}
	}
	return group.Of(pod).Key
}

// ran notes that a Run which stands for a group has come to another phase.
func (g *groups) ran(run *rqv1.Run) {
	if key, ok := group.KeyOf(run); ok {
		g.mu.Lock()
		of := g.of(key)
		changed := of.phase != run.Status.Phase || of.run != run.UID
		of.started = of.started && of.run == run.UID || run.Status.Phase == rqv1.RunRunning || run.Status.Attempt > 0
		changed = changed || of.said != run.Status.Message && (group.Reports(key) || g.tells(of, run))
		of.phase, of.run, of.said = run.Status.Phase, run.UID, run.Status.Message
		g.stands(run, !run.Ended())
		g.mu.Unlock()
		if changed {
			g.again(key)
		}
	}
}

// tells reports whether pods of a group are told what its Run says: it waits and has given them no ranks, by which they
// would be told. The lock is held.
func (g *groups) tells(of *pods, run *rqv1.Run) bool {
	if run.Status.Phase == rqv1.RunPending {
		for _, pod := range of.waiting {
			if g.asksForGPUs(pod) {
				return true
			}
		}
	}
	return false
}

// ended notes that a Run is gone which stood for a group.
func (g *groups) ended(run *rqv1.Run) {
	if key, ok := group.KeyOf(run); ok {
		g.mu.Lock()
		if of := g.of(key); of.run == run.UID {
			of.run, of.phase, of.started = "", "", false
		}
		g.stands(run, false)
		g.tidy(key)
		g.mu.Unlock()
		g.again(key)
	}
}

// tidy forgets a group of which nothing is left, in a process that does not look at any. The lock is held.
func (g *groups) tidy(key group.Key) {
	if of := g.known[key]; of != nil && !g.decides.Load() && len(of.waiting) == 0 && of.run == "" {
		delete(g.known, key)
	}
}

// begin has all groups be looked at: this process decides from now on.
func (g *groups) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decides.Store(true)
	for key := range g.known {
		g.again(key)
	}
}

// of returns the pods of a group. The lock is held.
func (g *groups) of(key group.Key) *pods {
	of := g.known[key]
	if of == nil {
		of = &pods{waiting: map[types.UID]*corev1.Pod{}, ranked: map[types.UID]string{}}
		g.known[key] = of
	}
	return of
}

func runOf(key group.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: group.RunName(key)}
}

// decide has the book know what becomes of some pods, and forget those that have gone meanwhile: nobody else would have
// it do that.
func (g *groups) decide(pods []*corev1.Pod, as book.Stranger) {
	g.book.Decide(pods, as)
	g.mu.Lock()
	gone := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { _, waits := g.at[pod.UID]; return waits })
	g.mu.Unlock()
	for _, pod := range gone {
		g.book.Forget(pod.UID)
	}
}

// again has a group looked at soon: pods of one come together.
func (g *groups) again(key group.Key) {
	if g.decides.Load() {
		g.line.add(key, g.workOn(key), debounce)
	}
}

// workOn returns what there is to do for a group of which something is told: those that have begun go before those that
// have not, and what has ended goes last.
func (g *groups) workOn(key group.Key) lane.Work {
	switch run := g.runOf(key); {
	case run == nil:
		return lane.Begin
	case run.Ended():
		return lane.Expire
	}
	return lane.End
}

// offers returns the pods that a Run could give ranks to, and how its group has ended. While a pod is not seen with the
// rank that it has been given, there is none to give: another would get the same.
func (g *groups) offers(run *rqv1.Run) ([]book.Offer, rqv1.RunPhase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, _ := group.KeyOf(run)
	of := g.known[key]
	if of == nil || !of.seen {
		return nil, ""
	}
	if of.past {
		return nil, of.end
	}
	if g.unseenOf(of) {
		return nil, of.end
	}
	var waiting []*corev1.Pod
	for _, pod := range of.waiting {
		made := g.exclusiveJob(pod) == nil || of.apart[pod.UID].yes
		if made && g.asksForGPUs(pod) && !gated(pod) && of.pays(run, pod) && g.misfit(run, pod) == "" {
			waiting = append(waiting, pod)
		}
	}
	if len(waiting) == 0 {
		return nil, of.end
	}
	members, err := g.membersOf(run)
	if err != nil {
		return nil, of.end
	}
	var out []book.Offer
	ranks := of.shape.Seats(waiting, members)
	for _, pod := range waiting {
		at := ranks[pod.UID]
		if each := run.Spec.Resources.GPUsPerPod; each != nil && int32(at)**each >= run.Spec.Desired() {
			at = -1 // some of the group had completed before the Run began, which has fewer ranks
		}
		out = append(out, book.Offer{Pod: pod, Rank: at})
	}
	return out, of.end
}
