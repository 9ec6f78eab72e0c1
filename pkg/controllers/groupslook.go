package controllers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// How soon a group is looked at again although nothing is told of it: what is said of it is on objects that nobody
// watches. One whose pods have all ended may be about to say how it has ended, and one of which there are pods without
// GPUs alone to get others.
const (
	groupRest    = 10 * time.Second
	groupEnding  = time.Second
	groupNext    = 2 * time.Second
	groupPending = time.Minute // one that waits for its places
	// groupPace is how much time there is between two such looks at least.
	groupPace = 10 * time.Millisecond
	// lookTakes is how long reading what is known of a group may take: others wait for the worker.
	lookTakes = 10 * time.Second
)

// lookAt brings a group a step further. It returns when to look again without an event; 0 for never.
func (g *groups) lookAt(ctx context.Context, key group.Key) (again time.Duration, err error) {
	run := g.runOf(key)
	waiting, members, err := g.podsOf(key, run)
	if err != nil {
		return 0, err
	}
	if len(waiting)+len(members) == 0 && run == nil {
		g.forget(key)
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTakes)
	defer cancel()
	made, err := g.asMade(ctx, key, waiting)
	if err != nil {
		return 0, err
	}
	if len(made) < len(waiting) { // nobody tells when what made them may be read
		defer func() { again = lifecycle.Soonest(again, g.rest(groupRest)) }()
	}
	waiting = made
	all := waiting
	waiting, misfits := g.misfits(key, run, waiting, members)
	wants := slices.ContainsFunc(waiting, g.asksForGPUs)
	if run == nil && len(members) == 0 && !wants {
		left := g.mayCome(waiting)
		g.decide(waiting, book.Stranger{Free: left <= 0}) // none of them asks for GPUs
		return max(0, left), nil
	}
	o, problem, err := g.observe(ctx, key, run, slices.Concat(waiting, members))
	if err != nil {
		return 0, err
	}
	g.learn(o)
	v := &view{Observed: o, waiting: waiting, members: members, problem: problem, wants: wants,
		end: endOf(o, waiting, members), empty: len(members) == 0 && !wants}
	if run != nil && haveCompleted(members) {
		g.goesOn(v, run, all)
	}
	if !v.past {
		for pod, why := range misfits {
			g.refuse(lifecycle.ReasonNotServed, why, pod)
		}
	}
	v.idle = !v.empty && !v.wants && !slices.ContainsFunc(members, func(pod *corev1.Pod) bool { return !rank.Ended(pod) })
	if run != nil && (v.empty || v.idle) {
		if v.left, err = g.left(ctx, run, o.Maker); err != nil {
			return 0, err
		}
	}
	g.keep(v)
	if g.succeed(run, v) {
		if run == nil {
			return 0, nil
		}
		return 0, g.deleteRun(ctx, run)
	}
	return g.further(ctx, run, v)
}

// further brings the Run of a group, or a group that has none, a step further, as it is seen.
func (g *groups) further(ctx context.Context, run *rqv1.Run, v *view) (_ time.Duration, err error) {
	stale := false
	if run != nil && run.DeletionTimestamp == nil {
		if stale, err = g.stale(ctx, run, v); err != nil {
			return 0, err
		}
	}
	switch {
	case run != nil && run.DeletionTimestamp != nil:
		return 0, nil // its own event looks again
	case stale:
		return g.remake(ctx, run, v)
	case run != nil && run.Ended() && v.wants && v.end == "":
		return 0, g.deleteRun(ctx, run) // others of its pods have come
	case run != nil && v.end == "" && (v.empty || v.idle && group.Suspended(v.Object) != ""):
		return g.await(ctx, run, v)
	case run != nil:
		return g.serve(ctx, run, v)
	case len(v.waiting) == 0:
		return 0, nil
	case v.end != "" && v.problem == "":
		v.problem = hasEnded(v.Key, v.end)
	}
	return g.derive(ctx, v.Observed, v.waiting, v.problem)
}

// goesOn notes whether a group whose Run is complete goes on with pods that are a gang of their own: all that wait are
// then, whether or not they fit into the Run.
func (g *groups) goesOn(v *view, run *rqv1.Run, waiting []*corev1.Pod) {
	o := *v.Observed
	o.Pods = slices.Concat(waiting, v.members)
	if slices.ContainsFunc(waiting, g.asksForGPUs) && group.Outgrown(run, &o) {
		v.Observed, v.waiting, v.past, v.wants = &o, waiting, true, true
	}
}

// mayCome returns for how long it is waited for more pods of a group, as many as its pods say that it has, or for those
// that its controller makes next: they may ask for GPUs, and those that do not start with them. Who waits in vain goes.
func (g *groups) mayCome(waiting []*corev1.Pod) (left time.Duration) {
	for _, pod := range waiting {
		rest := time.Duration(0)
		switch size := group.Of(pod).Size; {
		case size > len(waiting):
			rest = groupRest
		case size <= 0:
			rest = groupNext
		}
		left = max(left, pod.CreationTimestamp.Add(rest).Sub(g.clock.Now()))
	}
	return left
}

// view is a group as it is looked at.
type view struct {
	*group.Observed
	waiting, members []*corev1.Pod
	// problem is why what the group is known by cannot be read.
	problem string
	// end is how the group has ended.
	end rqv1.RunPhase
	// wants says that pods with GPUs wait for a rank, empty that there are no pods with GPUs, idle that all have ended,
	// and started that the group has run.
	wants, empty, idle, started bool
	// left says that its controller makes no pod instead of the one that has gone.
	left bool
	// past says that the Run is complete, and what waits is a gang of its own.
	past bool
	// mayNotGrow says of service accounts why the group does not grow by their pods; empty for those by whose it may.
	mayNotGrow map[string]string
	// rest is after what time one that is idle is looked at again.
	rest time.Duration
}

// keep notes what is known of a group. One whose pods have failed and are made by a controller has not ended for as
// long as their places are kept: it may be begun anew (R42).
func (g *groups) keep(v *view) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.of(v.Key)
	if !v.idle {
		of.idle = time.Time{}
	} else if of.idle.IsZero() {
		of.idle = now
	}
	if v.end == rqv1.RunFailed && now.Before(of.idle.Add(g.deadline)) && madeAgain(v) {
		v.end = ""
	}
	if len(v.members) > 0 {
		of.empty = time.Time{}
	}
	if v.past && of.phase == rqv1.RunRunning {
		v.end = rqv1.RunCompleted
	}
	of.past, of.size = v.past, len(v.waiting)+len(v.members)
	of.shape, of.seen, of.end = group.ShapeOf(v.Observed), v.problem == "", v.end
	v.started, v.rest = of.started, groupEnding
	if now.Sub(of.idle) >= groupRest {
		v.rest = groupRest
	}
}

// rest returns when to look again at a group that waits for what nobody tells of, after a least time: the more groups
// wait the later, so that who makes many which nobody pays for has no more read than that.
func (g *groups) rest(least time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(least, time.Duration(g.wait)*groupPace)
}

// serve has a Run that stands for a group get pods of it.
func (g *groups) serve(ctx context.Context, run *rqv1.Run, v *view) (time.Duration, error) {
	who, err := g.mayJoin(ctx, v.Key, run, v.waiting, v.members)
	if err != nil || who == nil {
		return 0, err
	}
	v.waiting = g.turnDown(run, v.waiting, who)
	if g.deserted(run, v) {
		g.feed(run, v)
		return g.await(ctx, run, v)
	}
	resized, err := g.resize(ctx, run, v)
	if err != nil {
		return 0, err
	}
	v.wants = slices.ContainsFunc(v.waiting, g.asksForGPUs)
	soon := g.tellRest(run, v, resized)
	if soon == 0 { // else one is about to be told why it waits now
		soon, err = g.retract(ctx, v.waiting, run, false)
	}
	after := lifecycle.Soonest(g.feed(run, v), soon) // they may be bound from now on
	maps.Copy(who, v.mayNotGrow)
	turned := slices.ContainsFunc(slices.Collect(maps.Values(who)), func(why string) bool { return why != "" })
	if rest := g.rest(groupRest); turned && !run.Ended() && (after == 0 || rest < after) {
		after = rest // nobody tells when that is mended
	}
	return after, errors.Join(err, g.report(ctx, v.Observed, run, ""))
}

// podsOf returns the pods of a group that wait for a rank, in order of their names, and those that have one in the Run,
// if any, that stands for it.
func (g *groups) podsOf(key group.Key, run *rqv1.Run) (waiting, members []*corev1.Pod, err error) {
	waits := map[types.UID]bool{}
	g.mu.Lock()
	for uid, pod := range g.of(key).waiting {
		waiting, waits[uid] = append(waiting, pod), true
	}
	g.mu.Unlock()
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	if run == nil {
		return waiting, nil, nil
	}
	all, err := g.membersOf(run)
	for _, pod := range all {
		if !waits[pod.UID] {
			members = append(members, pod)
		}
	}
	return waiting, members, err
}

// membersOf returns the pods that have ranks in a Run which stands for a group. Those of a former Run of its name take
// their time to go.
func (g *groups) membersOf(run *rqv1.Run) (members []*corev1.Pod, err error) {
	all, err := ofRun[corev1.Pod](g.watches.pods, client.ObjectKeyFromObject(run))
	for _, pod := range all {
		if uid, ok := rank.RunOf(pod); ok && uid == run.UID && rank.Theirs(pod) {
			members = append(members, pod)
		}
	}
	return members, err
}

// runOf returns the Run that stands for a group; nil where there is none. One that has its name may be somebody else's,
// or another group's.
func (g *groups) runOf(key group.Key) *rqv1.Run {
	run := g.cachedRun(runOf(key))
	if run == nil || !standsFor(run, key) {
		return nil
	}
	return run
}

func (g *groups) cachedRun(name types.NamespacedName) *rqv1.Run {
	o, there, err := g.watches.runs.GetStore().GetByKey(name.String())
	if err != nil || !there {
		return nil
	}
	return o.(*rqv1.Run)
}

func standsFor(run *rqv1.Run, key group.Key) bool {
	of, ok := group.KeyOf(run)
	return ok && of == key
}

func (g *groups) forget(key group.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if of := g.known[key]; of != nil && len(of.waiting) == 0 {
		delete(g.known, key)
	}
}

func (g *groups) asksForGPUs(pod *corev1.Pod) bool { return g.rules.GPUs(&pod.Spec) > 0 }

// derive makes the Run that stands for a group, or tells its pods why there is none.
func (g *groups) derive(ctx context.Context, o *group.Observed, waiting []*corev1.Pod, problem string) (time.Duration,
	error) {
	d := group.DeriveNew(o)
	if problem != "" {
		d.Problem, d.Spec = problem, nil
	}
	if d.Spec != nil {
		refused, err := g.mayAllPay(ctx, waiting, d.Spec.Owner)
		if err != nil {
			return 0, err
		}
		d.Problem = refused
		if refused == "" {
			d.Problem, err = g.createRun(ctx, o, &d)
			if err != nil {
				return 0, err
			}
		}
	}
	told := d.Problem
	if g.lacks(o.Key, d.Waits) {
		told = cmp.Or(told, d.Waits)
	}
	switch {
	case told != "":
		problem := g.report(ctx, o, nil, told)
		soon, err := g.tellAll(ctx, waiting, told, d.Problem == "")
		return lifecycle.Soonest(g.rest(groupRest), soon), errors.Join(problem, err)
	case d.Spec == nil && d.Waits == "":
		g.decide(waiting, book.Stranger{Free: true}) // none of them asks for GPUs
		return 0, nil
	}
	g.decide(waiting, book.Stranger{})
	if d.Spec != nil {
		return g.retract(ctx, waiting, nil, false) // the Run's own event looks again
	}
	return g.rest(groupRest), g.report(ctx, o, nil, d.Waits)
}

// madeAgain reports whether the pods of a group are made by controllers, which may make others in their places, and no
// object says how it has ended.
func madeAgain(v *view) bool {
	return group.End(v.Object) == "" && !v.left && slices.ContainsFunc(v.members, func(pod *corev1.Pod) bool {
		return metav1.GetControllerOfNoCopy(pod) != nil
	})
}

// feed has a Run be looked at that stands for a group with pods that wait, or that has ended, and lets those go that
// ask for no GPUs once it runs. It returns when to look again without an event.
func (g *groups) feed(run *rqv1.Run, v *view) time.Duration {
	name := client.ObjectKeyFromObject(run)
	runs := run.Status.Phase == rqv1.RunRunning || run.Ended() ||
		run.Spec.TheirsComeLate() && holdsAny(v.members) // others may be made only once these are ready
	for _, pod := range v.waiting {
		g.decide([]*corev1.Pod{pod}, book.Stranger{Free: runs && !g.asksForGPUs(pod)})
	}
	if v.wants {
		g.changed(name, lane.Begin)
	}
	switch {
	case run.Ended():
		return 0
	case v.end != "" && (len(v.members) > 0 || len(v.waiting) == 0):
		g.changed(name, lane.End)
		return 0
	case v.idle:
		return v.rest
	case v.problem != "":
		return g.rest(groupRest)
	case run.Status.Phase != rqv1.RunRunning:
		return g.rest(groupPending)
	}
	return 0
}

// endOf returns how a group has ended: as its object says, else as its pods have, if no more come; empty while it goes
// on.
func endOf(o *group.Observed, waiting, members []*corev1.Pod) rqv1.RunPhase {
	if end := group.End(o.Object); end != "" {
		return end
	}
	if len(waiting) > 0 || len(members) == 0 || o.Object != nil && group.Says(o.Key) {
		return ""
	}
	end := rqv1.RunCompleted
	for _, pod := range members {
		switch {
		case !rank.Ended(pod), pod.DeletionTimestamp != nil: // who is told to go ends by that, and says so before it is gone
			return ""
		case pod.Status.Phase == corev1.PodFailed:
			end = rqv1.RunFailed
		}
	}
	return end
}
