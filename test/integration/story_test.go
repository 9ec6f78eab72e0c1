package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/test/story"
	"github.com/davidlangworthy/jobtree/test/story/simulated"
)

// sampled are the stories that are told on a real control plane always, beside those that need real parts: of each kind
// of thing that happens those that cost little, all with the same configuration. JOBTREE_STORIES, a regular expression,
// has those be told whose names match.
var sampled = []string{
	"evicted-pressure", "evicted-again-and-again", "tainted-nodes", "cordon-is-no-loss", "signs-of-maintenance",
	"node-deleted-room-in-the-domain", "node-deleted-room-in-another", "requeued-keeps-its-room",
	"restart-in-place", "restart-exit-codes", "restart-no-other-node", "pod-deleted-by-hand",
	"spares", "spares-need-money", "spares-need-room", "spare-on-a-lost-node", "swap-onto-a-lower-priority",
	"shards-fill-and-swap", "shards-left-alone", "shards-with-their-node",
	"run-starts", "run-completes", "run-fails", "ranks-know-who-they-are", "narrower-start", "grow-and-shrink",
	"terminating-pods-hold-gpus", "suspended-before-it-starts",
	"spread-over-domains", "spread-over-domains-and-nodes",
	"refused-huge", "refused-unknown-owner", "refused-outside-a-window",
	"nodes-that-are-not-used", "pods-of-the-nodes-that-came", "queue-of-one-owner",
	"woken-by-a-lease", "woken-by-a-node", "woken-by-a-budget", "woken-by-a-payer", "woken-by-an-uncordoned-node",
	"woken-by-room-where-it-is-paid-for",
	"borrowed-first-by-desire",
	"two-lend-to-each-other", "circle-of-parents", "budget-deleted", "edited-lending-off", "edited-cap-lowered",
}

// chosen reports whether a story is told.
func chosen(t *testing.T, s *story.Story) bool {
	t.Helper()
	of := os.Getenv("JOBTREE_STORIES")
	if of == "" {
		return s.Real != "" || slices.Contains(sampled, s.Name)
	}
	matches, err := regexp.MatchString("^("+of+")", s.Name)
	if err != nil {
		t.Fatal(err)
	}
	return matches && (s.Long == "" || s.Name == of)
}

// TestStoriesAgree tells stories on a real control plane and on the simulated cluster, and compares how they end:
// whoever believes the one may believe the other. Stories with the same configuration share a control plane.
func TestStoriesAgree(t *testing.T) {
	t.Parallel()
	var kinds [][]story.Story
	for _, s := range story.All() {
		if !chosen(t, &s) {
			continue
		}
		at := slices.IndexFunc(kinds, func(k []story.Story) bool {
			return s.Alone == "" && k[0].Alone == "" && reflect.DeepEqual(k[0].Args, s.Args)
		})
		if at < 0 {
			kinds = append(kinds, nil)
			at = len(kinds) - 1
		}
		kinds[at] = append(kinds[at], s)
	}
	for _, alike := range kinds {
		t.Run("with "+alike[0].Name, func(t *testing.T) {
			t.Parallel()
			c := storyCluster(t, &alike[0])
			for _, s := range alike {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					agree(t, c, &s)
				})
			}
		})
	}
	for _, name := range sampled {
		if !slices.ContainsFunc(story.All(), func(s story.Story) bool { return s.Name == name }) {
			t.Errorf("there is no story %s", name)
		}
	}
}

// agree tells a story on both clusters. What is still to be told when it is over, such as for whom one waits by then,
// is told within a while.
func agree(t *testing.T, c *cluster, s *story.Story) {
	t.Helper()
	rests := *s
	rests.Play = func(teller *story.Teller) { s.Play(teller); teller.Later(10 * time.Second) }
	simulation := story.Tell(t, simulated.New(t, s), &rests)
	story.Tell(t, newRealCluster(t, c, s), s, simulation)
}

// storyCluster is a cluster whose scheduler is configured as a story has it.
func storyCluster(t *testing.T, s *story.Story) *cluster {
	t.Helper()
	if s.Args == nil && s.Alone == "" {
		return liveCluster(t)
	}
	c := clusterForMany(t, withoutElection, s.Arguments())
	(&site{cluster: c, t: t}).startScheduler()
	return c
}

// realCluster is a site on which a story is told.
type realCluster struct {
	s *site
	// holds says that writes can be held here.
	holds bool
	// mutex guards said.
	mutex sync.Mutex
	said  map[string][]string
}

// newRealCluster returns a site, and hears what its Runs say from now on.
func newRealCluster(t *testing.T, c *cluster, s *story.Story) *realCluster {
	t.Helper()
	r := &realCluster{s: namedSite(t, c, "s-"+s.Name, 0, 0, 0), said: map[string][]string{}}
	watch, err := c.api.Watch(t.Context(), &rqv1.RunList{}, client.InNamespace(r.s.namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	go func() {
		for event := range watch.ResultChan() {
			run, ok := event.Object.(*rqv1.Run)
			if !ok || story.Saying(run) == "" {
				continue
			}
			r.mutex.Lock()
			r.said[run.Name] = append(r.said[run.Name], story.Saying(run))
			r.mutex.Unlock()
		}
	}()
	return r
}

// Said is what a Run has said.
func (c *realCluster) Said(run string) []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Compact(slices.Clone(c.said[run]))
}

var _ story.Cluster = (*realCluster)(nil)

// Site is the site.
func (c *realCluster) Site() story.Site {
	return story.Site{Namespace: c.s.namespace, Flavor: c.s.flavor, Owner: c.s.owner}
}

// Now is the time.
func (c *realCluster) Now() time.Time { return time.Now() }

// World is what the API shows.
func (c *realCluster) World() *story.World {
	c.s.t.Helper()
	var is *world
	events := &eventsv1.EventList{}
	eventually(c.s.t, "reading the site", func() (err error) {
		if is, err = c.s.look(c.s.t.Context()); err == nil {
			ctx, ofAll := c.s.t.Context(), &eventsv1.EventList{}
			err = errors.Join(c.s.api.List(ctx, events, client.InNamespace(c.s.namespace)), c.s.api.List(ctx, ofAll, ofNodes))
			events.Items = append(events.Items, ofAll.Items...)
		}
		return err
	})
	w := &story.World{World: audit.World{At: time.Now(), Pods: pointers(is.pods), Leases: pointers(is.leases),
		Budgets: pointers(is.budgets), Reservations: pointers(is.reservations)}}
	for _, node := range is.nodes {
		w.Nodes = append(w.Nodes, &node)
	}
	for _, run := range is.runs {
		w.Runs = append(w.Runs, &run)
	}
	for i := range events.Items {
		e := &events.Items[i]
		if e.Namespace != c.s.namespace && !strings.HasPrefix(e.Regarding.Name, c.s.namespace+"-") {
			continue
		}
		count := int32(1)
		if e.Series != nil {
			count = e.Series.Count
		}
		w.Events = append(w.Events, story.Event{Kind: e.Regarding.Kind, Name: e.Regarding.Name, Reason: e.Reason,
			Note: e.Note, Count: count})
	}
	w.Sort()
	return w
}

// Create makes objects.
func (c *realCluster) Create(objects ...client.Object) error {
	var nodes []corev1.Node
	for _, o := range objects {
		if node, is := o.(*corev1.Node); is {
			nodes = append(nodes, *node)
		} else if err := c.s.api.Create(c.s.t.Context(), o); err != nil {
			return err
		}
		if class, is := o.(*schedulingv1.PriorityClass); is {
			c.s.t.Cleanup(func() { _ = c.s.api.Delete(context.Background(), class) })
		}
	}
	if len(nodes) > 0 {
		c.s.load(nodes...)
	}
	return nil
}

// Change changes an object, and what is its status beside that.
func (c *realCluster) Change(object client.Object, change func()) error {
	ctx, key := c.s.t.Context(), client.ObjectKeyFromObject(object)
	return waitFor(c.s.t, "changing "+object.GetName(), patience, func() error {
		err := c.s.api.Get(ctx, key, object)
		if _, is := object.(*corev1.ConfigMap); is && apierrors.IsNotFound(err) {
			change() // nobody has said anything yet
			return c.s.api.Create(ctx, object)
		}
		if err != nil {
			return err
		}
		before := object.DeepCopyObject()
		change()
		after := object.DeepCopyObject()
		rest, status, err := changed(before, after)
		if err != nil {
			return err
		}
		if rest {
			if err := c.s.api.Update(ctx, object); err != nil {
				return err
			}
		}
		if status {
			if rest { // what was written comes back with the status that it had
				change()
			}
			return c.s.api.Status().Update(ctx, object)
		}
		return nil
	})
}

// changed reports whether an object has changed, and whether its status has.
func changed(before, after runtime.Object) (rest, status bool, err error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return false, false, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	status = !reflect.DeepEqual(was["status"], is["status"])
	delete(was, "status")
	delete(is, "status")
	return !reflect.DeepEqual(was, is), status, err
}

// Delete deletes an object.
func (c *realCluster) Delete(object client.Object, options ...client.DeleteOption) error {
	if _, is := object.(*coordinationv1.Lease); is {
		c.s.revive(object.GetName())
		return nil
	}
	return c.s.api.Delete(c.s.t.Context(), object, options...)
}

// Evict asks that a pod be evicted.
func (c *realCluster) Evict(pod string) error {
	return c.s.kube.PolicyV1().Evictions(c.s.namespace).Evict(c.s.t.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.s.namespace, Name: pod}})
}

// Kill ends the scheduler at once, and begins another.
func (c *realCluster) Kill(meanwhile ...func()) {
	c.s.t.Helper()
	if len(meanwhile) == 0 {
		c.s.killAfter(0)
		return
	}
	c.s.killed()
	for _, happens := range meanwhile {
		happens()
	}
	c.s.startScheduler()
}

// Hold has the API server refuse bindings, or not any more.
func (c *realCluster) Hold(is bool) {
	c.s.t.Helper()
	if !c.holds {
		installHolds(c.s.t, c.s.cluster, swapWrites)
		c.holds = true
	}
	c.s.hold(map[bool]string{true: "leased"}[is])
}

// Until waits, as long as anything is waited for.
func (c *realCluster) Until(check func() error) error {
	return waitFor(c.s.t, "what a story waits for", patience, check)
}

// During looks again and again.
func (c *realCluster) During(span time.Duration, check func() error) error {
	var broken error
	err := wait.PollUntilContextTimeout(c.s.t.Context(), 50*time.Millisecond, span, true,
		func(context.Context) (bool, error) {
			broken = check()
			return broken != nil, nil
		})
	if broken == nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("waiting for %s: %w", span, err)
	}
	return broken
}
