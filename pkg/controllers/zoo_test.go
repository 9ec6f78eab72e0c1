package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
	"github.com/davidlangworthy/jobtree/test/story"
	"github.com/davidlangworthy/jobtree/test/story/simulated"
	"github.com/davidlangworthy/jobtree/test/zoo"
)

// TestZoo has what people's workloads go through told on the simulated cluster, in whose process the groups are those
// of the scheduler; once more with a process that dies at one of its writes.
func TestZoo(t *testing.T) {
	t.Parallel()
	reads := readableKinds(t)
	groups := func(c *simulated.Cluster, b *book.Book) sim.Groups { return newSimGroups(c, b, reads) }
	for _, s := range zoo.Stories(false) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := simulated.NewWith(t, &s, groups)
			story.Tell(t, c, &s)
			again := simulated.NewWith(t, &s, groups)
			again.Faults.Add(sim.Fault{Of: sim.All, After: c.Writes / 2, Do: sim.Crash})
			story.Tell(t, again, &s)
		})
	}
}

// readableKinds are what the scheduler is let read of what other controllers run, as manifests say.
func readableKinds(t *testing.T) map[schema.GroupResource]bool {
	t.Helper()
	text, err := os.ReadFile("../../manifests/rbac/groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[schema.GroupResource]bool{{Resource: "pods"}: true}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, api := range rule.APIGroups {
				for _, resource := range rule.Resources {
					out[schema.GroupResource{Group: api, Resource: resource}] = true
				}
			}
		}
	}
	return out
}

// simGroups are the groups of a process in a simulated cluster, with that for an API server, and its time.
type simGroups struct {
	*groups
	c     *simulated.Cluster
	time  *clocktesting.FakeClock
	queue *simLine
}

func newSimGroups(c *simulated.Cluster, b *book.Book, reads map[schema.GroupResource]bool) *simGroups {
	told := fake.NewClientset()
	tells(c, told)
	clock, kube := clocktesting.NewFakeClock(c.Now()), rights{told, c.Site().Owner}
	var versions []schema.GroupVersion
	for _, kind := range zoo.Kinds() {
		versions = append(versions, kind.GroupVersion())
	}
	served := meta.NewDefaultRESTMapper(versions)
	for _, kind := range zoo.Kinds() {
		served.Add(kind, meta.RESTScopeNamespace)
	}
	api := &simAPI{c: c, served: served, reads: reads}
	o := &Options{Args: c.Args, Book: b, Clock: clock, Kube: kube, Client: api, events: &events.FakeRecorder{},
		Shared: informers.NewSharedInformerFactory(kube, 0)}
	g := &simGroups{groups: newGroups(o, newWatches(nil, kube), nil), c: c, time: clock}
	g.queue = &simLine{now: c.Now, at: map[group.Key]time.Time{}}
	g.line = &groupLine{line: line[group.Key]{PriorityQueue: g.queue}, shares: newShares[group.Key](groupWorkers)}
	g.groups.changed = func(run types.NamespacedName, _ lane.Work) { c.LookAt(run.Name) }
	for _, name := range slices.Sorted(maps.Keys(c.Runs)) {
		g.SawRun(nil, c.Runs[name])
	}
	for _, uid := range c.SortedPods() {
		g.SawPod(nil, c.Pods[uid])
	}
	g.begin()
	return g
}

// tells has the pods of a simulated cluster say what they are told.
func tells(c *simulated.Cluster, kube *fake.Clientset) {
	kube.PrependReactor("patch", "pods", func(a core.Action) (bool, runtime.Object, error) {
		patch, told := a.(core.PatchAction), &corev1.Pod{}
		if err := json.Unmarshal(patch.GetPatch(), told); err != nil {
			return true, nil, err
		}
		for _, uid := range c.SortedPods() {
			if is := c.Pods[uid]; is.Name == patch.GetName() && len(told.Status.Conditions) == 1 {
				c.Tell(is, told.Status.Conditions[0])
			}
		}
		return true, told, nil
	})
}

// SawPod tells of a pod as two informers do: that of the pods which have not ended, and that of those with ranks.
func (g *simGroups) SawPod(was, is *corev1.Pod) {
	g.time.SetTime(g.c.Now())
	lives := func(pod *corev1.Pod) bool { return pod != nil && !rank.Ended(pod) }
	ranked := func(pod *corev1.Pod) bool { return pod != nil && pod.Labels[rqv1.LabelRun] != "" }
	switch {
	case lives(is):
		g.note(is)
	case lives(was):
		g.drop(was)
	}
	store := g.watches.pods.GetIndexer()
	switch {
	case ranked(is):
		_ = store.Add(is)
		g.member(is)
	case ranked(was):
		_ = store.Delete(was)
		g.gone(was)
	}
}

// SawRun tells of a Run.
func (g *simGroups) SawRun(was, is *rqv1.Run) {
	g.time.SetTime(g.c.Now())
	store := g.watches.runs.GetIndexer()
	if is == nil {
		_ = store.Delete(was)
		g.ended(was)
		return
	}
	_ = store.Add(is)
	g.ran(is)
}

// Offers are those of the groups.
func (g *simGroups) Offers(run *rqv1.Run) ([]book.Offer, rqv1.RunPhase) {
	offers, end := g.offers(run)
	slices.SortFunc(offers, func(a, b book.Offer) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	return offers, end
}

// Look looks at the groups that are due, as work does.
func (g *simGroups) Look() bool {
	g.time.SetTime(g.c.Now())
	due := g.queue.due()
	for _, key := range due {
		var err error
		after := g.pace(key)
		if after == 0 {
			after, err = g.look(context.Background(), key)
		}
		switch {
		case err != nil:
			g.line.again(key, lane.Begin)
		case after > 0:
			g.line.add(key, lane.Begin, after)
		}
	}
	return len(due) > 0
}

// Next is when a group is due.
func (g *simGroups) Next() (time.Time, bool) {
	first := time.Time{}
	for _, at := range g.queue.at {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, !first.IsZero()
}

// simLine are the groups that are to be looked at, in simulated time.
type simLine struct {
	priorityqueue.PriorityQueue[group.Key]
	now func() time.Time
	at  map[group.Key]time.Time
}

// AddWithOpts has groups looked at after a while; one that went wrong after a second.
func (q *simLine) AddWithOpts(o priorityqueue.AddOpts, keys ...group.Key) {
	if o.RateLimited {
		o.After = time.Second
	}
	for _, key := range keys {
		at := q.now().Add(o.After)
		if is, there := q.at[key]; !there || at.Before(is) {
			q.at[key] = at
		}
	}
}

func (q *simLine) due() (out []group.Key) {
	for key, at := range q.at {
		if !at.After(q.now()) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b group.Key) int {
		return cmp.Or(q.at[a].Compare(q.at[b]), cmp.Compare(a.API+a.String(), b.API+b.String()))
	})
	for _, key := range out {
		delete(q.at, key)
	}
	return out
}
