package plugins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// judges returns kube-scheduler's framework with its own plugins for what pods ask for and keep off.
func judges(t testing.TB, snapshot *cache.Snapshot) framework.Framework {
	t.Helper()
	return judged{}.framework(t, snapshot)
}

// judged is what kube-scheduler's framework looks at beside what pods ask for and keep off.
type judged struct {
	stored []runtime.Object
	by     []string // the plugins
}

func (j judged) framework(t testing.TB, snapshot *cache.Snapshot) framework.Framework {
	t.Helper()
	defaults, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := defaults.Profiles[0]
	only := config.PluginSet{Disabled: []config.Plugin{{Name: "*"}}, Enabled: []config.Plugin{
		{Name: names.NodeResourcesFit}, {Name: names.NodePorts},
		{Name: names.InterPodAffinity}, {Name: names.PodTopologySpread}}}
	reserve := config.PluginSet{Disabled: []config.Plugin{{Name: "*"}}}
	for _, name := range j.by {
		only.Enabled = append(only.Enabled, config.Plugin{Name: name})
		if name == names.VolumeBinding || name == names.DynamicResources {
			reserve.Enabled = append(reserve.Enabled, config.Plugin{Name: name})
		}
	}
	profile.Plugins = &config.Plugins{PreFilter: only, Filter: only, Reserve: reserve,
		QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: names.PrioritySort}}},
		Bind:      config.PluginSet{Enabled: []config.Plugin{{Name: names.DefaultBinder}}}}
	kube := fake.NewClientset(j.stored...)
	shared := informers.NewSharedInformerFactory(kube, 0)
	f, err := frameworkruntime.NewFramework(t.Context(), plugins.NewInTreeRegistry(), &profile,
		frameworkruntime.WithClientSet(kube), frameworkruntime.WithInformerFactory(shared),
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithMutableSnapshotLister(snapshot),
		devicesOf(t.Context(), t, kube, shared))
	if err != nil {
		t.Fatal(err)
	}
	shared.Start(t.Context().Done())
	shared.WaitForCacheSync(t.Context().Done())
	return f
}

// cpuNode is a node of 8 GPUs and 16 CPUs.
func cpuNode(name string) *corev1.Node {
	node := nodeNamed(name)
	node.Labels[corev1.LabelHostname] = name
	node.Status.Allocatable["cpu"], node.Status.Allocatable["pods"] = resource.MustParse("16"), resource.MustParse("110")
	return node
}

// rankPod is a pod of a Run that asks for GPUs and CPUs and, if it is to be alone, keeps off the others.
func rankPod(name, gpus, cpus string, alone bool) *corev1.Pod {
	asks := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus), "cpu": resource.MustParse(cpus)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		Labels: map[string]string{rqv1.LabelRun: "run", rqv1.LabelRole: string(rqv1.RoleActive)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: asks, Limits: asks}}}}}
	if alone {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{rqv1.LabelRun: "run"}}}}}}
	}
	return pod
}

// other is a pod that runs on a node.
func other(name, node, gpus, cpus string) *corev1.Pod {
	pod := rankPod(name, gpus, cpus, false)
	pod.Labels, pod.Spec.NodeName = map[string]string{"app": "other"}, node
	return pod
}

// TestVerify has kube-scheduler's own plugins judge places, with some pods gone and those of the gang one after the
// other; the snapshot is as it was afterwards.
func TestVerify(t *testing.T) {
	const anti, cpu = "node(s) didn't match pod anti-affinity rules", "Insufficient cpu"
	on := func(pod *corev1.Pod, nodes ...string) []book.Place {
		var out []book.Place
		for i, node := range nodes {
			next := pod.DeepCopy()
			next.Name, next.UID = fmt.Sprint(pod.Name, i), types.UID(fmt.Sprint(pod.UID, i))
			out = append(out, book.Place{Pod: next, Node: node})
		}
		return out
	}
	holder, daemon := other("holder", "n1", "8", "10"), other("daemon", "n2", "0", "12")
	turns := func(pod types.UID, node, why string, most int) []book.Turning {
		return []book.Turning{{Pod: pod, Node: node, Why: why, Most: most}}
	}
	for name, c := range map[string]struct {
		places []book.Place
		leaves types.UID // n1
		unseen bool
		seats  bool
		want   []book.Turning
	}{
		"free nodes": {places: on(rankPod("rank", "4", "8", false), "n0", "n0")},
		"one pod too many": {on(rankPod("rank", "2", "6", false), "n0", "n0", "n0"), "", false, false,
			turns("rank2", "n0", cpu, 2)},
		"a node that has no CPU": {on(rankPod("rank", "2", "6", false), "n0", "n2"), "", false, false,
			turns("rank1", "n2", cpu, 0)},
		"a node that is full": {on(rankPod("rank", "8", "8", false), "n1"), "", false, false,
			turns("rank0", "n1", cpu+", Insufficient nvidia.com/gpu", 0)},
		"with its holder gone": {places: on(rankPod("rank", "8", "8", false), "n1"), leaves: "holder"},
		"pods that are to be apart": {on(rankPod("rank", "1", "1", true), "n0", "n0", "n2"), "", false, false,
			turns("rank1", "n0", anti, 1)},
		"a node that is not as known": {on(rankPod("rank", "4", "8", false), "n0"), "", true, false,
			turns("rank0", "n0", unsure, 0)},
		"places of spares that a node turns down": {on(rankPod("rank", "4", "10", false), "n0", "n2", "n2"), "", false, true,
			append(turns("rank1", "n2", cpu, 0), turns("rank2", "n2", cpu, 0)...)},
		"places of spares that are not as known": {on(rankPod("rank", "4", "8", false), "n0", "n2"), "", true, true,
			append(turns("rank0", "n0", unsure, 0), turns("rank1", "n2", unsure, 0)...)},
	} {
		t.Run(name, func(t *testing.T) {
			check := &book.Check{Places: c.places, Leaving: map[string][]types.UID{"n1": {c.leaves}}}
			nodes := []*corev1.Node{cpuNode("n0"), cpuNode("n1"), cpuNode("n2")}
			snapshot := cache.NewSnapshot([]*corev1.Pod{holder, daemon}, nodes)
			before := contents(t, snapshot)
			v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return !c.unseen },
				seats: c.seats, over: never}
			if sure := v.verify(t.Context(), check); sure == c.unseen {
				t.Errorf("it is sure: %v", sure)
			}
			if diff := cmp.Diff(c.want, v.turned); diff != "" {
				t.Errorf("turned down (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, contents(t, snapshot)); diff != "" {
				t.Errorf("the snapshot is not what it was:\n%s", diff)
			}
		})
	}
}

// TestOnePodIsAskedAboutWithoutACopy has the snapshot be in a session of changes already: another cannot begin, and
// none is needed for one pod for which nobody leaves.
func TestOnePodIsAskedAboutWithoutACopy(t *testing.T) {
	full := other("full", "n1", "0", "16")
	snapshot := cache.NewSnapshot([]*corev1.Pod{full}, []*corev1.Node{cpuNode("n0"), cpuNode("n1")})
	if err := snapshot.StartMutations(); err != nil {
		t.Fatal(err)
	}
	on := func(nodes ...string) (places []book.Place) {
		for i, node := range nodes {
			places = append(places, book.Place{Pod: rankPod(fmt.Sprint("rank", i), "1", "8", false), Node: node})
		}
		return places
	}
	leaves := map[string][]types.UID{"n1": {full.UID}}
	for name, c := range map[string]struct {
		check            book.Check
		sure             bool
		turned, accepted int
	}{
		"accepted":             {book.Check{Places: on("n0")}, true, 0, 1},
		"turned down":          {book.Check{Places: on("n1")}, true, 1, 0},
		"two of them":          {book.Check{Places: on("n0", "n0")}, false, 1, 0},
		"somebody leaves":      {book.Check{Places: on("n1"), Leaving: leaves}, false, 1, 0},
		"nobody leaves for it": {book.Check{Places: on("n0"), Leaving: map[string][]types.UID{}}, true, 0, 1},
	} {
		v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
			over: never}
		sure := v.verify(t.Context(), &c.check)
		if sure != c.sure || len(v.turned) != c.turned || len(v.accepted) != c.accepted {
			t.Errorf("%s: sure %v, turned %v, accepted %v", name, sure, v.turned, v.accepted)
		}
	}
}

// contents are the pods on the nodes of a snapshot.
func contents(t *testing.T, snapshot fwk.SharedLister) map[string][]string {
	t.Helper()
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, info := range nodes {
		for _, pod := range info.GetPods() {
			out[info.Node().Name] = append(out[info.Node().Name], pod.GetPod().Name)
		}
	}
	return out
}

// In the first round all nodes that turn pods down for good are found, and not those that only lack what the plan
// knows.
func TestLookAround(t *testing.T) {
	loner := other("loner", "n1", "0", "1")
	loner.Labels = map[string]string{rqv1.LabelRun: "run", "app": "other"}
	stays := other("stays", "n2", "0", "15")
	stays.Labels = map[string]string{"app": "stays"}
	noisy := other("noisy", "n3", "0", "1")
	rank := rankPod("rank", "1", "4", true)
	rank.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector =
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	nodes := []*corev1.Node{cpuNode("n0"), cpuNode("n1"), cpuNode("n2"), cpuNode("n3")}
	snapshot := cache.NewSnapshot([]*corev1.Pod{loner, stays, noisy}, nodes)
	for name, c := range map[string]struct {
		cuts bool
		want []string
	}{"start": {false, []string{"n1", "n3"}}, "cut": {true, []string{"n3"}}} {
		v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
			over: never}
		v.lookAround(t.Context(), &book.Check{Places: []book.Place{{Pod: rank, Node: "n0"}}, Cuts: c.cuts,
			Nodes: []string{"n0", "n1", "n2", "n3"}})
		var got []string
		for _, turning := range v.turned {
			got = append(got, turning.Node)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BenchmarkVerify asks about 1,000 pods that are to be apart, on 5,000 nodes with 20 pods each, and about all nodes.
func BenchmarkVerify(b *testing.B) {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	check := book.Check{}
	for i := range 5000 {
		name := fmt.Sprintf("n%04d", i)
		nodes = append(nodes, cpuNode(name))
		check.Nodes = append(check.Nodes, name)
		for k := range 20 {
			pods = append(pods, other(fmt.Sprintf("daemon-%d-%d", i, k), name, "0", "100m"))
		}
		if i < 1000 {
			check.Places = append(check.Places, book.Place{Pod: rankPod(fmt.Sprint("rank-", i), "8", "8", true), Node: name})
		}
	}
	snapshot := cache.NewSnapshot(pods, nodes)
	f := judges(b, snapshot)
	verifierOf := func() *verifier {
		return &verifier{plugins: f, snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
			over: never}
	}
	b.Run("places", func(b *testing.B) {
		for b.Loop() {
			if v := verifierOf(); !v.verify(b.Context(), &check) || len(v.turned) > 0 {
				b.Fatal(v.turned)
			}
		}
	})
	b.Run("one place", func(b *testing.B) {
		one := book.Check{Places: []book.Place{{Pod: rankPod("one", "8", "8", false), Node: "n0000"}}}
		for b.Loop() {
			if v := verifierOf(); !v.verify(b.Context(), &one) || len(v.turned) > 0 {
				b.Fatal(v.turned)
			}
		}
	})
	b.Run("all nodes", func(b *testing.B) {
		for b.Loop() {
			verifierOf().lookAround(b.Context(), &check)
		}
	})
}

func never() bool { return false }

// TestVerifyEnds has the time for asking be over after the first of two places: that no node is known to take the other
// is no reason to leave it alone where others are cut, for it can be asked about later.
func TestVerifyEnds(t *testing.T) {
	snapshot := cache.NewSnapshot(nil, []*corev1.Node{cpuNode("n0")})
	pod := rankPod("rank", "1", "1", false)
	for cuts, want := range map[bool][]book.Turning{
		false: {{Pod: pod.UID, Node: "n0", Why: late, Most: 1}},
		true:  nil,
	} {
		asked := 0
		v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
			over: func() bool { asked++; return asked > 1 }}
		check := &book.Check{Places: []book.Place{{Pod: pod, Node: "n0"}, {Pod: pod, Node: "n0"}}, Cuts: cuts}
		if v.verify(t.Context(), check) || len(v.accepted) != 1 {
			t.Error("it is sure of what it has not asked about")
		}
		if diff := cmp.Diff(want, v.turned); diff != "" {
			t.Errorf("cuts: %t: turned down (-want +got):\n%s", cuts, diff)
		}
	}
}

// Places that have been accepted are not asked about again, and their pods count for those that are.
func TestVerifyGoesOn(t *testing.T) {
	snapshot := cache.NewSnapshot(nil, []*corev1.Node{cpuNode("n0")})
	v := &verifier{plugins: judges(t, snapshot), snapshot: snapshot, knows: func(*corev1.Node) bool { return true },
		over: never}
	check := &book.Check{Accepted: 1}
	for _, name := range []string{"rank0", "rank1"} {
		check.Places = append(check.Places, book.Place{Pod: rankPod(name, "1", "9", false), Node: "n0"})
	}
	if !v.verify(t.Context(), check) || len(v.kinds) != 1 {
		t.Errorf("it is not sure, or has asked about %d pods", len(v.kinds))
	}
	want := []book.Turning{{Pod: "rank1", Node: "n0", Why: "Insufficient cpu", Most: 1}}
	if diff := cmp.Diff(want, v.turned); diff != "" {
		t.Errorf("turned down (-want +got):\n%s", diff)
	}
}
