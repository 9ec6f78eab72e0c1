package integration

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// mirror has the objects of a cluster that tests look at most, as its watches tell of them, and tells who waits that
// some have changed. What it has may be a moment old: nothing is asserted of it that was not read from the API server
// again.
type mirror struct {
	nodes, pods, runs, leases, budgets, reservations cache.SharedIndexInformer
	news                                             news
}

// newMirror returns the mirror of a cluster once it has all that there is. What is seen tells the ledger, too.
func newMirror(c *cluster, l *ledger) (*mirror, error) {
	m := &mirror{}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for _, kind := range []struct {
		informer *cache.SharedIndexInformer
		list     client.ObjectList
		object   client.Object
		saw      func(old, now any)
	}{
		{&m.nodes, &corev1.NodeList{}, &corev1.Node{}, nil},
		{&m.pods, &corev1.PodList{}, &corev1.Pod{}, func(_, now any) { l.saw(now.(*corev1.Pod)) }},
		{&m.runs, &rqv1.RunList{}, &rqv1.Run{}, nil},
		{&m.leases, &rqv1.LeaseList{}, &rqv1.Lease{}, func(old, now any) {
			l.changed(old.(*rqv1.Lease), now.(*rqv1.Lease))
			l.holds(now.(*rqv1.Lease))
		}},
		{&m.budgets, &rqv1.BudgetList{}, &rqv1.Budget{}, nil},
		{&m.reservations, &rqv1.ReservationList{}, &rqv1.Reservation{}, func(old, now any) {
			l.rewritten(old.(*rqv1.Reservation), now.(*rqv1.Reservation))
		}},
	} {
		saw := kind.saw
		if saw == nil {
			saw = func(any, any) {}
		}
		*kind.informer = cache.NewSharedIndexInformer(listWatch(c.api, kind.list), kind.object, 0, byNamespace)
		_, err := (*kind.informer).AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { saw(o, o); m.news.of(o) },
			UpdateFunc: func(old, now any) { saw(old, now); m.news.of(now) },
			DeleteFunc: func(o any) { m.news.of(o) },
		})
		if err != nil {
			return nil, err
		}
		go (*kind.informer).RunWithContext(context.Background())
	}
	for _, informer := range []cache.SharedIndexInformer{m.nodes, m.pods, m.runs, m.leases, m.budgets, m.reservations} {
		cache.WaitForCacheSync(nil, informer.HasSynced)
	}
	return m, nil
}

// mirrored are the objects of a namespace that a mirror has.
func mirrored[T any](from cache.SharedIndexInformer, namespace string) []T {
	found, _ := from.GetIndexer().ByIndex(cache.NamespaceIndex, namespace) // there is that index
	return values[T](found)
}

func values[T any](found []any) []T {
	out := make([]T, len(found))
	for i, o := range found {
		out[i] = *o.(*T)
	}
	return out
}

// news wakes those who wait for a change of what one site has.
type news struct {
	mutex sync.Mutex
	// next are closed when something of a site changes, by its name.
	next map[string]chan struct{}
}

// after returns what is closed once something of a site has changed from now on.
func (n *news) after(site string) <-chan struct{} {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.next == nil {
		n.next = map[string]chan struct{}{}
	}
	if n.next[site] == nil {
		n.next[site] = make(chan struct{})
	}
	return n.next[site]
}

// of tells that an object has changed, come or gone.
func (n *news) of(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	site := ""
	switch o := object.(type) {
	case *corev1.Node:
		site = o.Labels["gpu.flavor"]
	case *rqv1.Budget: // its owner is org:SITE, or below it
		if parts := strings.Split(string(o.Spec.Owner), ":"); len(parts) > 1 {
			site = parts[1]
		}
	case client.Object:
		site = o.GetNamespace()
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if c := n.next[site]; c != nil {
		close(c)
		delete(n.next, site)
	}
}

// places are the sites of each test that has some, by its name: who waits in it waits for what changes there.
var places struct {
	sync.Mutex
	sites map[string][]*site
}

// follow has tests of that name, and those within, wait for what changes on a site; it ends with the test.
func (s *site) follow() {
	places.Lock()
	defer places.Unlock()
	if places.sites == nil {
		places.sites = map[string][]*site{}
	}
	name := s.t.Name()
	places.sites[name] = append(places.sites[name], s)
	s.t.Cleanup(func() {
		places.Lock()
		defer places.Unlock()
		others := slices.DeleteFunc(slices.Clone(places.sites[name]), func(o *site) bool { return o == s })
		if places.sites[name] = others; len(others) == 0 {
			delete(places.sites, name)
		}
	})
}

// sitesOf are the sites of a test, and of those that it is within.
func sitesOf(t testing.TB) []*site {
	places.Lock()
	defer places.Unlock()
	var out []*site
	for name := t.Name(); name != ""; {
		out = append(out, places.sites[name]...)
		cut := strings.LastIndex(name, "/")
		name = name[:max(cut, 0)]
	}
	return out
}

// newsOf returns what is closed once something has changed on any of some sites, and ends that wait.
func newsOf(sites []*site) (changed <-chan struct{}, end func()) {
	if len(sites) == 1 {
		return sites[0].mirror.news.after(sites[0].namespace), func() {}
	}
	any, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	for _, s := range sites {
		next := s.mirror.news.after(s.namespace)
		go func() {
			select {
			case <-next:
				once.Do(func() { close(any) })
			case <-over:
			}
		}()
	}
	return any, func() { close(over) }
}
