package plugins

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// place has the gang of a pod be planned, on nodes that the profile's other plugins accept where the plan does not know
// their rules. What they say of a start that cannot be found out, or takes too long, the pods' own cycles find.
func (pl *Jobtree) place(ctx context.Context, pod *corev1.Pod, now time.Time) (string, *plan.Refusal) {
	if why := pl.sharedClaim(pod); why != "" {
		return "", pl.book.Contradict(pod.UID, why, now)
	}
	run, _ := rank.RunOf(pod)
	var since time.Time
	for round := 1; ; round++ {
		node, refusal := pl.book.Place(pod.UID, now)
		check := pl.book.Check(run, now)
		if check == nil {
			return node, refusal
		}
		if round == 1 {
			since = pl.clock.Now() // a plan that takes long is asked about once all the same
		}
		a := pl.ask(ctx, check, round, since)
		if a.interrupted {
			pl.interrupt(pod, check, a, now)
			return "", refusal
		}
		pl.book.Conclude(check, a.turned, !a.sure, now)
	}
}

// decide has it be decided who is cut for the gang of a refused pod, when its date has come. Nobody is told before all
// rules accept the places that it would have then, with those gone who are cut.
func (pl *Jobtree) decide(ctx context.Context, pod *corev1.Pod, now time.Time) {
	run, _ := rank.RunOf(pod)
	var since time.Time
	for round := 1; ; round++ {
		pl.book.Refused(pod.UID, now)
		check := pl.book.Check(run, now)
		if check == nil {
			return
		}
		if round == 1 {
			since = pl.clock.Now() // likewise
		}
		a := pl.ask(ctx, check, round, since)
		if a.interrupted {
			pl.interrupt(pod, check, a, now)
			return
		}
		settled := a.sure && len(a.turned) == 0
		check.Unsure = !a.sure
		pl.book.Conclude(check, a.turned, check.Doubtful(a.turned) || !settled && round == mostRounds, now)
		if settled {
			return
		}
	}
}

// interrupt has the rest of a check be asked about in a cycle of the pod's after others have had theirs.
func (pl *Jobtree) interrupt(pod *corev1.Pod, check *book.Check, a answer, now time.Time) {
	pl.book.Interrupt(check, a.turned, a.accepted, now)
	time.AfterFunc(breather, func() { pl.book.Again(pod.UID) })
}

// answer is what other rules say of a check.
type answer struct {
	// turned are the nodes that turn down what the gang has been given. It is not sure if that could not be found out of
	// one.
	turned []book.Turning
	sure   bool
	// interrupted says that the rest is to be found out later: there was no time, or what is made for a pod is not there
	// yet. The first so many places have been accepted.
	interrupted bool
	accepted    int
}

// ask finds out what other rules say of what a gang has been given. In the first round all nodes are looked at that
// turn its pods down whatever comes, so that there are not as many rounds as such nodes, unless its pods use different
// rules. What takes too long from an instant on could not be found out or, where others are cut for the gang, is to be
// later: a gang that there was never time for may take longer each time.
func (pl *Jobtree) ask(ctx context.Context, check *book.Check, round int, since time.Time) answer {
	others, ok := pl.handle.(framework.Framework)
	if !ok || len(check.Places) == 0 {
		return answer{sure: true} // there are none, or nothing is left to ask about
	}
	if check.Made && !equipped(others, check.Places) {
		return answer{interrupted: true}
	}
	most := longest << min(check.Tries, mostLonger)
	v := &verifier{plugins: others, snapshot: others.MutableSnapshotSharedLister(), knows: pl.book.Knows,
		seats: check.Seats, over: func() bool { return pl.clock.Since(since) > most }}
	a := answer{sure: v.verify(ctx, check)}
	if round == 1 && a.sure && len(v.turned) > 0 && v.oneKind(check.Places[0].Pod) {
		v.lookAround(ctx, check)
	}
	if a.sure {
		check.ArrangeAnew(v.turned, func(cleared bool) []string { return v.arrange(ctx, check, cleared) })
	} else {
		check.Unlaid = slices.ContainsFunc(v.turned, func(t book.Turning) bool { return t.Skewed })
	}
	a.turned, a.accepted, a.interrupted = v.turned, len(v.accepted), v.late && check.Cuts
	return a
}

// verifier asks plugins about the places of a gang, one after the other.
type verifier struct {
	plugins  framework.Framework
	snapshot fwk.MutableSnapshotSharedLister
	knows    func(*corev1.Node) bool
	kinds    []*kind
	seats    bool        // the places are those of spares
	alone    bool        // there is one place, and nobody comes after it or leaves for it
	over     func() bool // no time is left
	late     bool        // and so it was
	accepted []book.Place
	turned   []book.Turning
	claims   map[string]bool // what accepted places use of volumes and devices
	reserved []reservation   // what plugins count on by these, in order
}

// verify asks about the places of a gang on the snapshot as it will be: with those gone who are to leave, and each of
// the gang's pods on its node before the next is looked at. It returns false if it could not find out. For one pod for
// which nobody leaves the snapshot is as it will be: a session of changes copies what is known of all nodes.
func (v *verifier) verify(ctx context.Context, check *book.Check) bool {
	restore, ok := func() { v.unreserve(ctx) }, true
	v.alone = len(check.Places) == 1 && len(check.Leaving) == 0
	if !v.alone {
		restore, ok = v.without(ctx, check.Leaving)
	}
	defer restore()
	if !ok {
		v.giveUp(check.Places, unsure)
		return false
	}
	for i, place := range check.Places {
		if v.over() {
			v.late = true
			if !check.Cuts {
				v.giveUp(check.Places[i:], late)
			}
			return false
		}
		if !v.put(ctx, check, place, i < check.Accepted) {
			v.giveUp(check.Places[i:], unsure)
			return false
		}
	}
	return true
}

// without has the snapshot be as it will be once some pods are gone, until what it returns is called; not if it cannot.
func (v *verifier) without(ctx context.Context, leaving map[string][]types.UID) (restore func(), ok bool) {
	if v.snapshot.StartMutations() != nil {
		return func() {}, false
	}
	return func() {
		v.unreserve(ctx)
		if err := v.snapshot.EndMutations(); err != nil {
			klog.FromContext(ctx).Error(err, "the scheduler's snapshot is not what it was")
		}
	}, v.leave(ctx, leaving)
}

// giveUp notes that nothing can be found out about some places. No spare makes room for a rank that may not come.
func (v *verifier) giveUp(places []book.Place, why string) {
	for i, place := range places {
		if i == 0 || v.seats {
			v.turn(book.Turning{Pod: place.Pod.UID, Node: place.Node, Why: why})
		}
	}
}

// unsure and late are why a node counts as one that turns pods down which could not be asked about: nobody is cut on it
// for now.
const (
	unsure = "the scheduler cannot check the node as it will be then"
	late   = "the pod's scheduling rules take too long to check for all places of its Run"
)

// lookAround asks about the first pod of a gang on all nodes, as they are or, if others are cut for it, without the
// pods of Runs there. What nodes have beside GPUs, and how many of those, the plan knows.
func (v *verifier) lookAround(ctx context.Context, check *book.Check) {
	around := &verifier{plugins: v.plugins}
	k := around.kindOf(ctx, check.Places[0].Pod)
	from := check.Places[0].Node
	if len(v.turned) > 0 {
		from = v.turned[0].Node // there may be no time for all, and those before it have been looked at
	}
	at, _ := slices.BinarySearch(check.Nodes, from)
	for _, name := range slices.Concat(check.Nodes[at:], check.Nodes[:at]) {
		if v.over() {
			return
		}
		info, err := v.snapshot.NodeInfos().Get(name)
		if err != nil || info.Node() == nil || !v.knows(info.Node()) {
			continue
		}
		on := &kind{pod: k.pod, state: k.state, nodes: k.nodes, before: k.before, by: k.by}
		if check.Cuts {
			info = info.Snapshot()
			on.state = k.state.Clone()
			v.empty(ctx, on, info)
		}
		why, sure := on.turnsDown(ctx, v.plugins, info)
		if sure && why != "" && on.rule != names.NodeResourcesFit && on.rule != names.PodTopologySpread {
			v.turned = slices.DeleteFunc(v.turned, func(t book.Turning) bool { return t.Node == name && t.Shared })
			v.turn(book.Turning{Pod: k.pod.UID, Node: name, Why: why}) // wherever what it shares is bound
		}
	}
}

// empty has the pods of Runs be gone from a node.
func (v *verifier) empty(ctx context.Context, k *kind, info fwk.NodeInfo) {
	for _, on := range slices.Clone(info.GetPods()) {
		if ours(on.GetPod()) && info.RemovePod(klog.FromContext(ctx), on.GetPod()) == nil {
			v.plugins.RunPreFilterExtensionRemovePod(ctx, k.state, k.pod, on, info)
		}
	}
}

// leave takes pods off the snapshot. Those that are not on it are gone already, as are all of a node that is gone.
func (v *verifier) leave(ctx context.Context, leaving map[string][]types.UID) bool {
	for node, pods := range leaving {
		info, err := v.snapshot.NodeInfos().Get(node)
		if err != nil {
			continue
		}
		for _, on := range slices.Clone(info.GetPods()) {
			if pod := on.GetPod(); slices.Contains(pods, pod.UID) &&
				v.snapshot.RemovePod(klog.FromContext(ctx), pod, node) != nil {
				return false
			}
		}
	}
	return true
}

// kindOf returns the kind of a pod.
func (v *verifier) kindOf(ctx context.Context, pod *corev1.Pod) *kind {
	if i := slices.IndexFunc(v.kinds, func(k *kind) bool { return rank.Alike(k.pod, pod) }); i >= 0 {
		return v.kinds[i]
	}
	k := &kind{pod: pod}
	v.count(ctx, k)
	v.kinds = append(v.kinds, k)
	return k
}

// count has plugins look at the snapshot for a kind, as it is now.
func (v *verifier) count(ctx context.Context, k *kind) {
	k.state = framework.NewCycleState()
	k.state.Write(askingKey, askingMark{})
	k.nodes, k.before, k.by = v.plugins.RunPreFilterPlugins(ctx, k.state, k.pod)
	if len(book.SpreadKeys(k.pod)) > 0 {
		k.counted, k.since = k.state.Clone(), map[domain][]accepted{}
	}
}

// oneKind reports whether all pods of a pod's role that have been asked about are alike.
func (v *verifier) oneKind(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(v.kinds, func(k *kind) bool {
		return k.pod.Labels[rqv1.LabelRole] == pod.Labels[rqv1.LabelRole] && !rank.Alike(k.pod, pod)
	})
}

// put asks about one place, unless the answer is known, and, if it is accepted, has the pod be there for those that
// come after. It returns false if it could not find out.
func (v *verifier) put(ctx context.Context, check *book.Check, place book.Place, known bool) bool {
	info, err := v.snapshot.NodeInfos().Get(place.Node)
	if err != nil || info.Node() == nil || !v.knows(info.Node()) {
		return false // the scheduler does not have the node as the book has it, and says nothing of that one
	}
	if !known || len(rank.ClaimsOf(place.Pod)) > 0 {
		k := v.kindOf(ctx, place.Pod)
		why, sure := k.turnsDown(ctx, v.plugins, info)
		skewed := sure && why != "" && k.rule == names.PodTopologySpread
		if sure && why == "" && !k.surelyEven(ctx, v.plugins, info) || skewed && k.selectsAll() {
			v.count(ctx, k)
			why, sure = k.turnsDown(ctx, v.plugins, info)
		}
		switch {
		case !sure:
			return false
		case why != "":
			shared := k.rule == names.VolumeBinding && v.sharesUnbound(place.Pod)
			v.turn(book.Turning{Pod: place.Pod.UID, Node: place.Node, Why: why, Shared: shared,
				Skewed: k.rule == names.PodTopologySpread})
			v.bindsElsewhere(ctx, check, k, shared)
			return true
		}
		if !v.reserve(ctx, k, place) {
			return false
		}
	}
	if v.alone {
		v.accepted = append(v.accepted, place)
		return true
	}
	pod := place.Pod.DeepCopy()
	pod.Spec.NodeName = place.Node
	added, err := framework.NewPodInfo(pod)
	if err != nil || v.snapshot.AddPod(added, place.Node) != nil {
		return false
	}
	v.accepted = append(v.accepted, place)
	for _, other := range v.kinds {
		if !v.plugins.RunPreFilterExtensionAddPod(ctx, other.state, other.pod, added, info).IsSuccess() {
			return false
		}
		other.note(added, info)
	}
	return true
}

// turn notes that a node turns a pod down after those that it has accepted, perhaps for what they share: the first, or
// each that is to take the place of a spare.
func (v *verifier) turn(t book.Turning) {
	if !v.seats && slices.ContainsFunc(v.turned, func(o book.Turning) bool { return o.Node == t.Node }) {
		return
	}
	for _, other := range v.accepted {
		if other.Node == t.Node {
			t.Most++
		}
	}
	v.turned = append(v.turned, t)
}

// mostRounds is how often it is decided in one cycle who is cut for a gang, without the nodes that have turned its pods
// down, and longest for how long other rules are asked about it, and it is planned again, once there is a plan: nobody
// else is scheduled meanwhile. A decision may take twice as long each time that this did not do, up to mostLonger
// times; in between others are scheduled for as long as a breather.
const (
	mostRounds = 32
	longest    = 500 * time.Millisecond
	mostLonger = 3
	breather   = 100 * time.Millisecond
)
