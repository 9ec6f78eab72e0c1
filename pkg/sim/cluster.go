// Package sim is a cluster in memory: an API server, kubelets and a scheduling queue, around one process that decides
// as the scheduler does. It has no clock and no chance of its own: whoever drives it says what happens, and when. The
// random worlds of the tests drive it step by step; Play has it go through a history by itself.
package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// Namespace is the one in which all Runs are.
const Namespace = "ns"

// Options is what a Cluster is made with.
type Options struct {
	Args  *config.Args
	Rules lifecycle.Rules
	Begin time.Time
	// Reserves has waiting Runs get Reservations, and be started by them.
	Reserves bool
	// AtOnce has pods end as soon as they are told to, whatever their grace.
	AtOnce bool
	// Checks has the rules of other schedulers be asked about what is decided.
	Checks bool
	Witness
}

// Witness is told what happens. What is nil is told nothing.
type Witness struct {
	// Violated is told what must never be.
	Violated func(format string, args ...any)
	// Began is told of the book of each process before it learns anything, and may add to what it learns.
	Began func(b *book.Book) []func()
	// Decided is told of every decision, Stored of every status that is written, beside the Run as it was, and
	// Reserved of every write of a Reservation, beside the one before it; nil for a new one.
	Decided  func(o lifecycle.Observed, d lifecycle.Decision)
	Stored   func(next *rqv1.Run)
	Reserved func(was, next *rqv1.Reservation)
	// Worded is told what events on nodes say that come with a write.
	Worded func(word reconcile.NodeWord)
	// Rejected is told of pods that the rules of other schedulers turned down from where they had been placed.
	Rejected func(pod *corev1.Pod, node string)
	// Placed is told of pods that were planned just now.
	Placed func(pod *corev1.Pod, node string)
}

// Cluster is the cluster. Maps of objects are to be read only: what writes them has an own verb.
type Cluster struct {
	Options
	Now  time.Time
	Book *book.Book
	objects
	Faults Faults
	// Writes is how many writes there have been.
	Writes int
	// Rejects are the nodes that the rules of other schedulers turn down, and why.
	Rejects map[string]string
	// Zone tells in which zone a node is: a claim that the pods of a Run share is bound in that of its first pod, and
	// reaches no other. It is nil where volumes reach all nodes.
	Zone   func(node string) string
	claims map[types.UID]string // in which zone it is bound, by Run
	// Admits changes pods as they are made, as admission does; nil for nothing.
	Admits func(pod *corev1.Pod)
	// Holds has no pod be bound for now that has its Lease: the API server refuses that.
	Holds bool
	// Hasty has the scheduling queue hear of each pod before the book does, and be told that nothing is known of it.
	Hasty bool
	// Quota is how many pods there may be; 0 for any number.
	Quota int
	// Denies are the pods that an admission rule denies, by name, and why.
	Denies map[string]string
	// Takes tells how long a pod takes to end that is told to; nil for all the time that it is given.
	Takes func(pod *corev1.Pod) time.Duration
	// Prompt has kubelets let go of a pod at the instant at which they say that it has ended.
	Prompt bool
	// Slow has pods not be ready as they begin, and Unready those of which it says so; it is nil for none.
	Slow    bool
	Unready func(pod *corev1.Pod) bool
	// Unsure are the nodes of which those rules cannot find out whether they accept a pod. Asked counts how often they
	// were asked.
	Unsure map[string]bool
	Asked  int
	// Turns says why a node turns a pod down for what the pod is; empty when it does not. It is nil for no such rule.
	Turns func(pod *corev1.Pod, node string) string
	// Refuses reports whether another plugin refuses a pod that has its node, as nobody could ask before. It is nil for no
	// such plugin.
	Refuses func(pod *corev1.Pod, node string, at Point) bool
	// Hurried has there be time to ask about one more place a cycle, and Unlaid none to find out where pods could be
	// spread.
	Hurried, Unlaid bool
	// altered counts how often nodes came, went or were labelled otherwise, and came is what it was as pods came to their
	// nodes.
	altered int
	came    map[types.UID]int
	// Meanwhile happens the next time that those rules are asked, before they answer; nil for nothing.
	Meanwhile func()
	// Groups makes the Runs that stand for pods which no Run made; nil for nobody, where Make has pods be made for Runs.
	Groups Groups
	// GroupEnds tells how the groups of pods have ended that Runs stand for, by the UID of the Run.
	GroupEnds map[types.UID]rqv1.RunPhase
	// Bystanders are pods that are no Run's and hold no GPUs.
	Bystanders map[types.UID]*corev1.Pod
	surprised  map[types.UID]bool // pods on whose nodes bystanders have come since they were placed

	// Waiting are the pods at the barrier, and until when, Binding those past it, with their nodes, and Queue those
	// that the scheduling queue is going to try.
	Waiting *Agenda[types.UID]
	Binding map[types.UID]string
	Queue   map[types.UID]bool
	// Ends are the pods that were told to go, and when they are gone.
	Ends *Agenda[types.UID]
	// Retries are the Runs that are to be planned again.
	Retries *Agenda[string]
	// looks are the Runs that are to be looked at again, and changed those of which something has changed since they
	// were.
	looks   *Agenda[string]
	changed map[string]bool
	order   *reconcile.Runs
	// reckons is when it is worked out again how much each Run is beyond its payer's limit.
	reckons time.Time
	// NextUID numbers objects.
	NextUID int
}

// New returns a cluster in which a process has begun, without nodes but for Machines, which are no part of it: the book
// knows of them, and no pod is ever to be on one.
func New(o Options) *Cluster {
	c := &Cluster{
		Options: o, Now: o.Begin, objects: newObjects(), Rejects: map[string]string{}, Unsure: map[string]bool{},
		claims:     map[types.UID]string{},
		Denies:     map[string]string{},
		GroupEnds:  map[types.UID]rqv1.RunPhase{},
		Bystanders: map[types.UID]*corev1.Pod{}, surprised: map[types.UID]bool{},
		Waiting: newAgenda[types.UID](), Binding: map[types.UID]string{}, Queue: map[types.UID]bool{},
		Ends: newAgenda[types.UID](), Retries: newAgenda[string](), looks: newAgenda[string](), changed: map[string]bool{},
		came: map[types.UID]int{},
	}
	c.Boot(nil)
	return c
}

// keyOf is the key of the Run of a name.
func keyOf(run string) types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace, Name: run}
}

// UID returns one that nobody has.
func (c *Cluster) UID() types.UID {
	c.NextUID++
	return types.UID(fmt.Sprintf("%08d-uid", c.NextUID))
}

// Boot has a process begin that has read everything there is, in an order of its own.
func (c *Cluster) Boot(shuffle func(events []func()) []func()) {
	c.Book = c.Rebuilt(shuffle)
	c.order = reconcile.New(c.Book, server{c}, c.Rules, func() time.Time { return c.Now })
	c.reckons = c.Now
	for _, name := range c.Live() {
		c.changed[name] = true
	}
}

// Crash loses everything that only the process knew.
func (c *Cluster) Crash(shuffle func(events []func()) []func()) {
	c.Waiting.Clear()
	clear(c.Binding)
	for uid := range c.Pods {
		c.Queue[uid] = true
	}
	c.looks.Clear()
	c.hangs, c.writesLate = false, false
	clear(c.untold)
	clear(c.lateRuns)
	c.seeAll()
	c.Boot(shuffle)
}

// Rebuilt returns a book that has read everything there is; nil leaves it in its order.
func (c *Cluster) Rebuilt(shuffle func(events []func()) []func()) *book.Book {
	b := book.New(c.Args)
	if c.Checks {
		b.AskRules()
	}
	b.SetLotteryKey([]byte("0123456789abcdef0123456789abcdef"))
	var events []func()
	if c.Began != nil {
		events = c.Began(b)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		events = append(events, func() { b.SetNode(c.Nodes[name]) })
	}
	for _, machine := range Machines() {
		events = append(events, func() { b.SetNode(&machine) })
	}
	for _, name := range slices.Sorted(maps.Keys(c.Budgets)) {
		events = append(events, func() { b.Budgets.SetBudget(c.Budgets[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(c.Runs)) {
		events = append(events, func() { b.SetRun(c.Runs[name]) })
	}
	for _, uid := range c.SortedPods() {
		events = append(events, func() { b.SetPod(c.Pods[uid]) }, func() { b.SetMember(c.Pods[uid]) })
	}
	for _, uid := range slices.Sorted(maps.Keys(c.Bystanders)) {
		events = append(events, func() { b.SetPod(c.Bystanders[uid]) })
	}
	for _, lease := range c.OpenLeases() {
		events = append(events, func() { b.SetLease(lease) })
	}
	for _, name := range slices.Sorted(maps.Keys(c.Reservations)) {
		events = append(events, func() { b.SetReservation(c.Reservations[name]) })
	}
	if shuffle != nil {
		events = shuffle(events)
	}
	for _, event := range events {
		event()
	}
	for _, name := range slices.Sorted(maps.Keys(c.Leases)) { // closed ones are not watched, but read at the end
		if lease := c.Leases[name]; lease.Status.Closed {
			b.SetLease(lease)
		}
	}
	b.Begin(c.Now)
	return b
}

// Reconcile does what the Run controller does for one Run.
func (c *Cluster) Reconcile(name string) error {
	if c.lateRuns[name] {
		return errBehind
	}
	delete(c.changed, name)
	ctx := context.Background()
	objects := book.Objects{Name: keyOf(name), Run: c.Runs[name], Pods: c.toldOf(name)}
	for _, lease := range c.openOf.sorted(name) {
		objects.Leases = append(objects.Leases, c.Leases[lease])
	}
	for _, reservation := range c.seenOf.sorted(name) {
		objects.Reservations = append(objects.Reservations, c.Seen[reservation])
	}
	if guard := c.guards[name]; guard != nil && objects.Run != nil {
		if of, _ := rank.RunOf(guard); of == objects.Run.UID {
			objects.Guards = append(objects.Guards, guard)
		}
	}
	if run := objects.Run; run != nil && run.Spec.Theirs() {
		objects.Offers, objects.GroupEnd = c.offers(run), c.GroupEnds[run.UID]
		if c.Groups != nil {
			objects.Offers, objects.GroupEnd = c.Groups.Offers(run)
		}
	}
	out, err := c.order.Reconcile(ctx, objects, c.Decided)
	if out.Retry > 0 && !c.Retries.Has(name) {
		c.Retries.Set(name, c.Now.Add(out.Retry))
	}
	switch {
	case out.After > 0:
		c.looks.Set(name, c.Now.Add(out.After))
	case err == nil:
		c.looks.Delete(name)
		if run := c.Runs[name]; run != nil {
			if at, goes := run.ExpiresAt(c.Rules.FinishedRunTTL); goes && at.After(c.Now) {
				c.looks.Set(name, at)
			}
		}
	}
	return err
}

// violated tells of what must never be.
func (c *Cluster) violated(format string, args ...any) {
	if c.Violated == nil {
		panic(fmt.Sprintf(format, args...))
	}
	c.Violated(format, args...)
}
