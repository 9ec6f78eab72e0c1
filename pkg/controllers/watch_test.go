package controllers

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// handed is an informer that hands on what it is told to.
type handed struct {
	cache.SharedInformer
	to cache.ResourceEventHandler
}

func (h *handed) AddEventHandler(to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.to = to
	return nil, nil
}

// TestWhatAWatchTells sets what is there and drops what is gone, also where it was gone and there again between two
// lists, or was found to be gone by one.
func TestWhatAWatchTells(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: uid}}
	}
	for name, test := range map[string]struct {
		happens func(to cache.ResourceEventHandler)
		want    []string
	}{
		"it is made":    {func(to cache.ResourceEventHandler) { to.OnAdd(pod("a"), false) }, []string{"set a"}},
		"it is changed": {func(to cache.ResourceEventHandler) { to.OnUpdate(pod("a"), pod("a")) }, []string{"set a"}},
		"it is deleted": {func(to cache.ResourceEventHandler) { to.OnDelete(pod("a")) }, []string{"drop a"}},
		"another has its name": {func(to cache.ResourceEventHandler) { to.OnUpdate(pod("a"), pod("b")) },
			[]string{"drop a", "set b"}},
		"a list lacks it": {func(to cache.ResourceEventHandler) {
			to.OnDelete(cache.DeletedFinalStateUnknown{Key: "x", Obj: pod("a")})
		}, []string{"drop a"}},
		"a list lacks what nobody knows": {func(to cache.ResourceEventHandler) {
			to.OnDelete(cache.DeletedFinalStateUnknown{Key: "x"})
		}, nil},
	} {
		var got []string
		from := &handed{}
		err := handle(&watches{}, from, func(p *corev1.Pod) { got = append(got, "set "+string(p.UID)) },
			func(p *corev1.Pod) { got = append(got, "drop "+string(p.UID)) })
		if err != nil {
			t.Fatal(err)
		}
		test.happens(from.to)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNodesAreJudgedWhenSomethingIsSeenOfThem, or of what they hold, and not for a heartbeat.
func TestNodesAreJudgedWhenSomethingIsSeenOfThem(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, seen, clock := newServer(t), newNodeWatch(args), clocktesting.NewFakeClock(noon)
	w := newWatches(s.kinds, s.kube)
	fleet := &handed{}
	leases, heartbeats := &indexed{handed: handed{}}, &indexed{handed: handed{}}
	w.leases, w.heartbeats = leases, heartbeats
	if err := seen.follow(w, fleet, clock); err != nil {
		t.Fatal(err)
	}
	due := func() []string {
		var out []string
		for seen.queue.Len() > 0 {
			name, _ := seen.queue.Get()
			seen.queue.Done(name)
			out = append(out, name)
		}
		slices.Sort(out)
		return out
	}
	lease := closed("b", "x")
	lease.Spec.Slice.Nodes = []rqv1.NodeGPUs{{Name: "n0", GPUs: 8}, {Name: "n1", GPUs: 8}}
	node := nodeOf8("n0")
	silent := node.DeepCopy()
	silent.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	for _, step := range []struct {
		what string
		does func()
		due  []string
		lost bool // by what has been seen of n0
	}{
		{"a heartbeat before all else", func() { heartbeats.to.OnAdd(heartbeatOf("n0", noon), true) }, nil, false},
		{"the node", func() { fleet.to.OnAdd(node, true) }, []string{"n0"}, false},
		{"what it holds", func() { leases.to.OnAdd(lease, true) }, []string{"n0", "n1"}, false},
		{"a heartbeat", func() {
			clock.Step(10 * time.Second)
			heartbeats.to.OnUpdate(heartbeatOf("n0", noon), heartbeatOf("n0", clock.Now()))
		}, nil, false},
		{"it is not Ready", func() { fleet.to.OnUpdate(node, silent) }, []string{"n0"}, false},
		{"for as long as that may be", func() {
			for range 3 {
				seen.contact.hear(true, clock.Now())
				clock.Step(10 * time.Second)
			}
			seen.contact.hear(true, clock.Now())
		}, nil, true},
		{"it is Ready again", func() { fleet.to.OnUpdate(silent, node) }, []string{"n0"}, true}, // its kubelet is silent
		{"its kubelet's lease is gone", func() {
			heartbeats.to.OnDelete(cache.DeletedFinalStateUnknown{Obj: heartbeatOf("n0", noon)})
		}, nil, false},
		{"the node is gone", func() { fleet.to.OnDelete(node) }, []string{"n0"}, true},
	} {
		step.does()
		if diff := cmp.Diff(step.due, due()); diff != "" {
			t.Errorf("%s: to be judged (-want +got):\n%s", step.what, diff)
		}
		if verdict := seen.verdict("n0", clock.Now()); verdict.Lost != step.lost {
			t.Errorf("%s: %+v", step.what, verdict)
		}
	}
}

// indexed is a handed informer that has an index.
type indexed struct {
	handed
	cache.SharedIndexInformer
}

func (i *indexed) AddIndexers(cache.Indexers) error { return nil }

func (i *indexed) AddEventHandler(to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.handed.AddEventHandler(to)
}

// TestLittleIsKeptOfAHeartbeat: there are as many as nodes, every few seconds.
func TestLittleIsKeptOfAHeartbeat(t *testing.T) {
	holder := "n0"
	full := heartbeatOf("n0", noon)
	full.Labels, full.Spec.HolderIdentity = map[string]string{"x": "y"}, &holder
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	s := newServer(t, full)
	watch := newHeartbeats(s.kube)
	go watch.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), watch.HasSynced) {
		t.Fatal("nothing is seen")
	}
	kept := watch.GetStore().List()
	want := []any{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: full.Namespace, Name: "n0"},
		Spec: coordinationv1.LeaseSpec{RenewTime: full.Spec.RenewTime}}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestKindsAreAwaited until the API server serves all of them.
func TestKindsAreAwaited(t *testing.T) {
	list := func(kinds ...string) *metav1.APIResourceList {
		out := &metav1.APIResourceList{GroupVersion: rqv1.GroupVersion.String()}
		for _, kind := range kinds {
			out.APIResources = append(out.APIResources, metav1.APIResource{Kind: kind})
		}
		return out
	}
	for name, test := range map[string]struct {
		served *metav1.APIResourceList
		all    bool
	}{
		"none":        {list(), false},
		"some":        {list("Run", "Budget", "Lease"), false},
		"all of them": {list("Lease", "Reservation", "Run", "Budget"), true},
		"and more":    {list("Lease", "Reservation", "Run", "Budget", "Owner"), true},
	} {
		if got := hasAll(test.served); got != test.all {
			t.Errorf("%s: %v", name, got)
		}
	}
	kube := kubefake.NewClientset()
	kube.Resources = []*metav1.APIResourceList{list("Lease", "Reservation", "Run", "Budget")}
	if err := awaitKinds(t.Context(), kube); err != nil {
		t.Errorf("they are all there: %v", err)
	}
}
