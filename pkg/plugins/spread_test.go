package plugins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// spreadPod is a rank whose pods are spread over nodes by a label.
func spreadPod(gpus string, keys ...string) *corev1.Pod {
	pod := rankPod("rank", gpus, "1", false)
	pod.Labels["app"] = "train"
	for _, key := range keys {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}})
	}
	return pod
}

// TestArrange has kube-scheduler's own plugin say where pods that are to be spread may go, more than one to each node
// or zone, and then accept them there.
func TestArrange(t *testing.T) {
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	like := other("like", "b0", "4", "1")
	like.Labels["app"] = "train"
	held := func(node string) *corev1.Pod { return other("tenant-"+node, node, "8", "1") }
	likeShard := other("shard-a0", "a0", "1", "1")
	likeShard.Labels["app"] = "train"
	for name, c := range map[string]struct {
		zones   string // nodes, each by its zone and number
		pod     *corev1.Pod
		pods    int
		there   []*corev1.Pod
		plain   int  // of them are not to be spread
		domains bool // each zone is one that the gang may not leave
		want    string
	}{
		"two zones":               {zones: "a0 a1 b0 b1", pod: spreadPod("1", zone), pods: 4, want: "a0 b0 a0 b0"},
		"two zones of full nodes": {zones: "a0 a1 b0 b1", pod: spreadPod("8", zone), pods: 4, want: "a0 b0 a1 b1"},
		"nodes":                   {zones: "a0 a1 b0", pod: spreadPod("2", host), pods: 4, want: "a0 a1 b0 a0"},
		"zones and nodes":         {zones: "a0 a1 b0 b1", pod: spreadPod("1", zone, host), pods: 5, want: "a0 b0 a1 b1 a0"},
		"some are there": {zones: "a0 a1 b0 b1", pod: spreadPod("1", zone), pods: 3, there: []*corev1.Pod{like},
			want: "a0 b0 a0"},
		"a zone without room": {zones: "a0 b0 c0", pod: spreadPod("8", zone), pods: 3,
			there: []*corev1.Pod{other("full", "c0", "8", "1")}},
		"shards are everywhere": {zones: "a0 b0", pod: spreadPod("8", zone), pods: 2, want: "a0 b0",
			there: []*corev1.Pod{other("shard-a0", "a0", "8", "1"), other("shard-b0", "b0", "8", "1")}},
		"shards beside which there is a way": {zones: "a0 a1 b0 b1 b2", pod: spreadPod("8", zone), pods: 4,
			there: []*corev1.Pod{likeShard}, want: "b0 a1 b1 b2"},
		"others who may be cut": {zones: "a0 a1 b0 b1", pod: spreadPod("4", zone), pods: 4, want: "a0 b0 a0 b0",
			there: []*corev1.Pod{held("a0"), held("a1"), held("b0"), held("b1")}},
		"others who may be cut in one zone": {zones: "a0 b0 b1", pod: spreadPod("4", zone), pods: 4, want: "b1 a0 b1 a0",
			there: []*corev1.Pod{held("b0"), held("a0")}},
		"others would take their room": {zones: "a0 b0 c0", pod: spreadPod("4", host), pods: 6, plain: 2,
			want: "b0 c0 a0 b0 c0 a0"},
		"one domain alone": {zones: "a0 b0", pod: spreadPod("1", zone), pods: 3, domains: true},
	} {
		t.Run(name, func(t *testing.T) {
			check := &book.Check{Spots: map[string]book.Spot{}}
			var nodes []*corev1.Node
			for _, name := range strings.Fields(c.zones) {
				node := cpuNode(name)
				node.Labels[zone] = name[:1]
				nodes = append(nodes, node)
				spot := book.Spot{Pods: int(8 / gpusOf(c.pod)), Labels: node.Labels}
				if i := slices.IndexFunc(c.there, func(p *corev1.Pod) bool { return p.Name == "shard-"+name }); i >= 0 {
					spot.Shards = []types.UID{c.there[i].UID}
				}
				if i := slices.IndexFunc(c.there, func(p *corev1.Pod) bool { return p.Name == "tenant-"+name }); i >= 0 {
					spot.Pods, spot.Cleared, spot.Tenants = 0, spot.Pods, []types.UID{c.there[i].UID}
				}
				if c.domains {
					spot.Domain = name[:1]
				}
				check.Spots[name] = spot
			}
			for i := range c.pods {
				pod := c.pod.DeepCopy()
				if i < c.plain {
					pod.Spec.TopologySpreadConstraints, pod.Labels["app"] = nil, "plain"
				}
				pod.Name, pod.UID = fmt.Sprint("rank", i), types.UID(fmt.Sprint("rank", i))
				check.Places = append(check.Places, book.Place{Pod: pod, Node: "a0"})
			}
			snapshot := cache.NewSnapshot(c.there, nodes)
			before := contents(t, snapshot)
			v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
				over: never}
			got := v.arrange(t.Context(), check, true)
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, contents(t, snapshot)); diff != "" {
				t.Errorf("the snapshot is not what it was:\n%s", diff)
			}
			leaving := map[string][]types.UID{}
			for i, node := range got {
				check.Places[i].Node = node
				leaving[node] = slices.Concat(check.Spots[node].Shards, check.Spots[node].Tenants)
			}
			check.Leaving = leaving
			if len(got) > 0 && (!v.verify(t.Context(), check) || len(v.turned) > 0) {
				t.Errorf("turned down: %+v", v.turned)
			}
		})
	}
}

// TestArrangedInTime: where there is no time it is not known where pods could be spread, which is not the same as
// nowhere.
func TestArrangedInTime(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	for name, c := range map[string]struct {
		room, time int
		unseen     string // as the book has it
		want       []string
		unsure     bool
	}{
		"time enough": {room: 1, time: 9, want: []string{"a0", "b0"}},
		"too little":  {room: 1, time: 1, unsure: true},
		"no room":     {room: 0, time: 9},
		"a node that the scheduler does not have": {room: 1, time: 9, unseen: "a0", want: []string{"a1", "b0"}},
		"the only one that it does not have":      {room: 1, time: 9, unseen: "b0", unsure: true},
	} {
		t.Run(name, func(t *testing.T) {
			check := &book.Check{Spots: map[string]book.Spot{}}
			var nodes []*corev1.Node
			for i, name := range []string{"a0", "a1", "b0"} {
				node := cpuNode(name)
				node.Labels[zone] = name[:1]
				nodes = append(nodes, node)
				check.Spots[name] = book.Spot{Pods: max(c.room, 1-i), Labels: node.Labels}
				if i == 2 {
					continue // there are two pods
				}
				pod := spreadPod("8", zone)
				pod.Name, pod.UID = fmt.Sprint("rank", i), types.UID(fmt.Sprint("rank", i))
				check.Places = append(check.Places, book.Place{Pod: pod, Node: "a0"})
			}
			snapshot, asked := cache.NewSnapshot(nil, nodes), 0
			v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot,
				knows: func(n *corev1.Node) bool { return n.Name != c.unseen },
				over:  func() bool { asked++; return asked > c.time }}
			check.ArrangeAnew([]book.Turning{{Skewed: true}}, func(clear bool) []string {
				return v.arrange(t.Context(), check, clear)
			})
			if diff := cmp.Diff(c.want, check.Spread); diff != "" || check.Unlaid != c.unsure {
				t.Errorf("unsure: %t, nodes (-want +got):\n%s", check.Unlaid, diff)
			}
		})
	}
}

// TestSpreadAmongAll: kube-scheduler counts nobody for pods that are to be spread among all others, and has them be
// anywhere.
func TestSpreadAmongAll(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	var nodes []*corev1.Node
	for _, name := range []string{"a0", "b0"} {
		node := cpuNode(name)
		node.Labels[zone] = name[:1]
		nodes = append(nodes, node)
	}
	check := &book.Check{}
	for i := range 3 {
		pod := spreadPod("1", zone)
		pod.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{}
		pod.Name, pod.UID = fmt.Sprint("rank", i), types.UID(fmt.Sprint("rank", i))
		check.Places = append(check.Places, book.Place{Pod: pod, Node: "a0"})
	}
	snapshot := cache.NewSnapshot(nil, nodes)
	v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
		over: never}
	if !v.verify(t.Context(), check) || len(v.turned) > 0 {
		t.Errorf("turned down: %+v", v.turned)
	}
}

// TestManyDomains: a zone that has none of a gang's pods and takes none counts beside those to which they come,
// whichever zones PodTopologySpread has kept in mind. It draws them anew each time.
func TestManyDomains(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	var nodes []*corev1.Node
	for _, name := range strings.Fields("a0 a1 b0 b1 c0") {
		node := cpuNode(name)
		node.Labels[zone] = name[:1]
		nodes = append(nodes, node)
	}
	check := &book.Check{Spots: map[string]book.Spot{}}
	for i, node := range nodes[:4] {
		check.Spots[node.Name] = book.Spot{Pods: 1, Labels: node.Labels}
		pod := spreadPod("8", zone)
		pod.Name, pod.UID = fmt.Sprint("rank", i), types.UID(fmt.Sprint("rank", i))
		check.Places = append(check.Places, book.Place{Pod: pod, Node: strings.Fields("a0 b0 a1 b1")[i]})
	}
	for range 50 {
		snapshot := cache.NewSnapshot([]*corev1.Pod{other("full", "c0", "8", "1")}, nodes)
		v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
			over: never}
		if got := v.arrange(t.Context(), check, false); got != nil {
			t.Fatalf("arranged on %v", got)
		}
		if !v.verify(t.Context(), check) || len(v.turned) != 2 || v.turned[0].Node != "a1" || v.turned[1].Node != "b1" {
			t.Fatalf("turned down: %+v", v.turned)
		}
	}
}

// gpusOf is how many GPUs a pod asks for.
func gpusOf(pod *corev1.Pod) int64 {
	gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	return gpus.Value()
}
