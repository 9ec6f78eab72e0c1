package controllers

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/group"
)

// watchedKind is an API server that comes to serve the PodGroups of the coscheduling plugin.
type watchedKind struct {
	client.WithWatch
	mu      sync.Mutex
	serves  bool
	refuses error
	there   []metav1.PartialObjectMetadata
	// asked is how often it was asked whether it serves them, and listed how often for them; told is what it tells of
	// them by.
	asked, listed int
	told          *watch.FakeWatcher
}

var coscheduling = schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"}

func (c *watchedKind) RESTMapper() meta.RESTMapper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{coscheduling})
	if c.serves {
		mapper.Add(coscheduling.WithKind("PodGroup"), meta.RESTScopeNamespace)
	}
	return mapper
}

func (c *watchedKind) List(_ context.Context, l client.ObjectList, _ ...client.ListOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed++
	l.(*metav1.PartialObjectMetadataList).Items = c.there
	return c.refuses
}

func (c *watchedKind) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = watch.NewFake()
	return c.told, nil
}

// set changes what the API server has.
func (c *watchedKind) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func podGroupMade(name string, generation int64) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		UID: types.UID(name), Generation: generation}}
}

// TestPodGroupsAreWatched once their kind is served and may be watched: one that is made, changed or deleted after its
// pods has their group be looked at, and its status does not.
func TestPodGroupsAreWatched(t *testing.T) {
	g := newGrouped(t)
	api := &watchedKind{WithWatch: g.kinds}
	g.groups.client = api
	for _, name := range []string{"a", "b"} {
		pod := foreign("pod-of-"+name, "8")
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": name}
		g.groups.note(pod)
		g.looksAt(name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.groups.watchKind(ctx, schema.GroupKind{Group: coscheduling.Group, Kind: "PodGroup"})
	}()
	g.steps("it is not served", func() bool { return api.asked > 0 }, api)
	api.set(func() { api.serves, api.refuses = true, forbidden })
	g.steps("it may not be watched", func() bool { return api.listed > 0 }, api)
	api.set(func() { api.refuses, api.there = nil, []metav1.PartialObjectMetadata{*podGroupMade("a", 1)} })
	g.steps("it is watched", func() bool { return api.told != nil }, api)
	g.looksAt("a")
	w := api.told
	w.Modify(podGroupMade("a", 1)) // its status
	w.Add(podGroupMade("of nobody", 1))
	w.Add(podGroupMade("b", 1))
	g.looksAt("b")
	w.Modify(podGroupMade("b", 2))
	g.looksAt("b")
	w.Delete(podGroupMade("b", 2))
	g.looksAt("b")
	native := podGroupMade("b", 0) // the API server counts no generations of the native kind
	native.ResourceVersion = "3"
	w.Add(native)
	g.looksAt("b")
	changed := native.DeepCopy()
	changed.ResourceVersion = "4"
	w.Modify(changed)
	g.looksAt("b")
	w.Delete(changed)
	g.looksAt("b")
	api.set(func() { api.there, api.told = nil, nil })
	w.Stop()
	g.steps("it is watched again", func() bool { return api.told != nil }, api)
	g.looksAt("a")
	cancel()
	<-ended
	if n := g.groups.line.Len(); n != 0 {
		t.Errorf("%d groups more are looked at", n)
	}
}

// steps lets time pass until something is so of what an API server was asked.
func (g *grouped) steps(what string, is func() bool, of *watchedKind) {
	g.t.Helper()
	g.soon(what, func() bool {
		of.mu.Lock()
		defer of.mu.Unlock()
		g.clock.Step(time.Second)
		return is()
	})
}

// soon awaits that something is so, which others bring about.
func (g *grouped) soon(what string, is func() bool) {
	g.t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); {
		if <-time.After(time.Millisecond); time.Now().After(end) {
			g.t.Fatalf("%s: it is not so after 10 s", what)
		}
	}
}

// looksAt awaits that the PodGroup of a name, and no other, is looked at.
func (g *grouped) looksAt(name string) {
	g.t.Helper()
	g.soon("PodGroup "+name+" is looked at", func() bool { return g.groups.line.Len() > 0 })
	key, _ := g.groups.line.next()
	g.groups.line.done(key)
	if want := (group.Key{Namespace: "ns", API: coscheduling.Group, Kind: "PodGroup", Name: name}); key != want {
		g.t.Errorf("%v is looked at, want %v", key, want)
	}
}
