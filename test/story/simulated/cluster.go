// Package simulated is a cluster in memory on which stories are told: pkg/sim, with people, kubelets and controllers
// around it. Time passes from one instant at which something happens to the next.
package simulated

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
	"github.com/davidlangworthy/jobtree/pkg/sim"
	"github.com/davidlangworthy/jobtree/test/story"
)

// longest is for how much simulated time something is waited for.
const longest = 90 * time.Second

// noon is when stories begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Cluster is such a cluster.
type Cluster struct {
	*sim.Cluster
	t story.T
	// succeeds is when pods succeed that say so.
	succeeds map[types.UID]time.Time
	classes  map[string]int32
	brakes   brake.State
	events   []story.Event
	said     map[string][]string
	// worded is what events on nodes have told that is so still.
	worded map[reconcile.NodeWord]bool
	// rules are those by which nodes are judged.
	rules nodeloss.Rules
	judge judge
	// Objects are those of kinds that nothing here knows, as KIND.GROUP/NAME.
	Objects map[string]*unstructured.Unstructured
	// groups makes what makes the Runs that stand for pods of others; nil for nothing.
	groups func(*Cluster, *book.Book) sim.Groups
	// stated are the conditions of Budgets, by name.
	stated map[string][]metav1.Condition
	// Crashes counts how often the process has died at a write.
	Crashes int
}

var _ story.Cluster = (*Cluster)(nil)

// New returns a cluster without nodes for a story.
func New(t story.T, s *story.Story) *Cluster { return NewWith(t, s, nil) }

// NewWith returns one in whose process something makes the Runs that stand for pods of others.
func NewWith(t story.T, s *story.Story, groups func(*Cluster, *book.Book) sim.Groups) *Cluster {
	t.Helper()
	args, err := s.Parsed()
	if err != nil {
		t.Fatalf("%v", err)
	}
	c := &Cluster{t: t, succeeds: map[types.UID]time.Time{}, classes: map[string]int32{}, said: map[string][]string{},
		stated: map[string][]metav1.Condition{}, Objects: map[string]*unstructured.Unstructured{}, groups: groups,
		rules: nodeloss.Rules{Grace: args.NodeLossGrace.Duration, Conditions: args.LossConditions()}}
	c.Cluster = sim.New(sim.Options{Args: args, Rules: lifecycle.RulesOf(args), Begin: noon, Reserves: true, Checks: true,
		Witness: sim.Witness{Violated: t.Errorf, Began: c.boots, Stored: c.hear, Worded: c.word}})
	c.Takes, c.Prompt, c.Admits, c.Unready, c.Hasty = takes, true, admits, unready, true
	if groups != nil {
		c.Groups = groups(c, c.Book)
	}
	return c
}

// boots tells a process that starts what is not among the objects of a sim.Cluster.
func (c *Cluster) boots(b *book.Book) (more []func()) {
	b.SetBrake(c.brakes)
	c.judge.begin(c)
	if c.Cluster != nil && c.groups != nil {
		c.Groups = c.groups(c, b)
	}
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		b.SetPriorityClass(name, c.classes[name])
	}
	return nil
}

// takes is how long a pod takes to end: as long as it says, else no time, as kwok has it.
func takes(pod *corev1.Pod) time.Duration {
	d, _ := time.ParseDuration(pod.Annotations[story.TakesAnnotation])
	return d
}

// unready reports whether a pod never becomes ready.
func unready(pod *corev1.Pod) bool {
	name := pod.Annotations[story.UnreadyAnnotation]
	return name != "" && strings.HasPrefix(pod.Name, name)
}

// admits has a pod be as the API server stores it.
func admits(pod *corev1.Pod) {
	if grace := int64(30); pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = &grace
	}
}

// Site is the whole cluster.
func (c *Cluster) Site() story.Site {
	return story.Site{Namespace: sim.Namespace, Flavor: "H100", Owner: "org:" + sim.Namespace}
}

// Now is simulated time.
func (c *Cluster) Now() time.Time { return c.Cluster.Now }

// Said is what a Run has said.
func (c *Cluster) Said(run string) []string { return slices.Compact(slices.Clone(c.said[run])) }

// hear notes what a Run says, and what events tell of it.
func (c *Cluster) hear(next *rqv1.Run) {
	if was := c.Runs[next.Name]; was != nil {
		for _, f := range reconcile.NewsOf(was, &next.Status) {
			c.tell("Run", next.Name, f.Reason, f.Note)
		}
	}
	if line := story.Saying(next); line != "" {
		c.said[next.Name] = append(c.said[next.Name], line)
	}
}

// report has the conditions of a Budget be as they should, and tells of those that change.
func (c *Cluster) report(b *rqv1.Budget) {
	report, known := c.Book.Budgets.BudgetReport(b, c.Now())
	if !known {
		return
	}
	was, next := c.stated[b.Name], b.DeepCopy()
	next.Status.Conditions = slices.Clone(was)
	is := reconcile.BudgetConditions(next, report, c.Now())
	c.stated[b.Name] = is
	for i := range is {
		old := meta.FindStatusCondition(was, is[i].Type)
		if old == nil || old.Status != is[i].Status || old.Reason != is[i].Reason {
			c.tell("Budget", b.Name, is[i].Reason, is[i].Message)
		}
	}
}

// word makes an event on a node.
func (c *Cluster) word(w reconcile.NodeWord) { c.tell("Node", w.Node, w.Reason, w.Text) }

// lookAtNodes tells of each node once for as long as the same is wrong with it.
func (c *Cluster) lookAtNodes() {
	was := c.worded
	c.worded = map[reconcile.NodeWord]bool{}
	for _, w := range reconcile.NodeWords(c.Book) {
		if !was[w] && !c.worded[w] {
			c.word(w)
		}
		c.worded[w] = true
	}
}

// tell makes an event of what is told of an object, or counts it in one.
func (c *Cluster) tell(kind, name, reason, note string) {
	for i := range c.events {
		if e := &c.events[i]; e.Kind == kind && e.Name == name && e.Reason == reason && e.Note == note {
			e.Count++
			return
		}
	}
	c.events = append(c.events, story.Event{Kind: kind, Name: name, Reason: reason, Note: note, Count: 1})
}

// Kill has another process begin.
func (c *Cluster) Kill(meanwhile ...func()) {
	for _, happens := range meanwhile {
		happens()
	}
	c.Crash(nil)
}

// Hold has no pod be bound, or all again.
func (c *Cluster) Hold(is bool) { c.Holds = is }

// Until lets time pass event by event. What is so already is so before anybody works, as it is on a real cluster.
func (c *Cluster) Until(check func() error) error {
	err := check()
	for end := c.Now().Add(longest); err != nil; {
		c.work()
		err = check()
		if err == nil || !c.Now().Before(end) {
			return err
		}
		c.pass(end)
	}
	return nil
}

// During lets so much time pass, event by event.
func (c *Cluster) During(span time.Duration, check func() error) error {
	for end := c.Now().Add(span); ; {
		c.work()
		err := check()
		if err != nil || !c.Now().Before(end) {
			return err
		}
		c.pass(end)
	}
}

// work has all happen that happens at this instant. When the process dies another begins.
func (c *Cluster) work() {
	for _, uid := range slices.Sorted(maps.Keys(c.succeeds)) {
		at := c.succeeds[uid]
		if pod := c.Pods[uid]; !at.After(c.Now()) {
			delete(c.succeeds, uid)
			if pod != nil && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				c.EndPod(uid, corev1.PodSucceeded)
			}
		}
	}
	c.judge.look(c)
	var err error
	for c.Step(func() { err = c.Tick() }) {
		c.Crashes++
		c.Crash(nil)
	}
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Budgets)) {
		c.report(c.Budgets[name])
	}
	c.lookAtNodes()
	for uid, pod := range c.Pods {
		after, says := pod.Annotations[story.SucceedsAnnotation]
		if _, set := c.succeeds[uid]; says && !set && pod.Status.Phase == corev1.PodRunning {
			d, _ := time.ParseDuration(after)
			c.succeeds[uid] = c.Now().Add(d)
		}
	}
}

// pass lets time pass until something happens, or until an instant.
func (c *Cluster) pass(end time.Time) {
	next := c.Next()
	for _, at := range c.succeeds {
		if at.Before(next) {
			next = at
		}
	}
	if again := c.judge.again; !again.IsZero() && again.Before(next) {
		next = again
	}
	if next.After(end) {
		next = end
	}
	c.Pass(max(1, next.Sub(c.Now())))
}

// known returns the object of a name, or an error.
func known[T any](objects map[string]*T, kind, name string) (*T, error) {
	if o := objects[name]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("there is no %s %s", kind, name)
}
