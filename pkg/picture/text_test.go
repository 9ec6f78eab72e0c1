package picture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/picture"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// in is a node of a domain.
func in(domain, name string, capacity, allocatable int, edits ...func(*corev1.Node)) *corev1.Node {
	n := node(name, capacity, allocatable)
	n.Labels["fabric.domain"] = domain
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// sample is a fleet on which everything occurs: two Runs, of which one has a spare, shards on idle GPUs and on the
// spare, a pod that is not jobtree's, a promise, a broken GPU, and nodes that are cordoned, lost, or lack a label.
func sample() *picture.Objects {
	lost := func(n *corev1.Node) {
		n.Annotations = map[string]string{rqv1.AnnotationLost: "2030-01-02T12:00:00Z KubeletLeaseStale silent for 30s"}
		n.Spec.Unschedulable = true
	}
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p"},
		Spec: corev1.PodSpec{NodeName: "a1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: gpus(3)}}}}}
	next := rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "next-r0"}, Spec: rqv1.ReservationSpec{
		RunRef:        rqv1.NamespacedName{Namespace: "ns", Name: "next"},
		IntendedSlice: &rqv1.IntendedSlice{Nodes: []string{"b3", "b1"}}, EarliestStart: metav1.NewTime(noon.Add(time.Hour))}}
	return &picture.Objects{
		Nodes: []*corev1.Node{in("B", "b1", 4, 4), in("A", "a2", 8, 8), in("A", "a1", 8, 8), in("A", "a10", 8, 8, cordoned),
			in("B", "b2", 4, 4, lost), in("B", "b3", 4, 3), in("", "nowhere", 4, 4)},
		Leases: []*rqv1.Lease{lease("train", rqv1.RoleActive, "a2", 8, noon), lease("train", rqv1.RoleSpare, "a1", 4, noon),
			lease("tune", rqv1.RoleActive, "a10", 2, noon), lease("shards", rqv1.RoleBorrowed, "a1", 2, noon),
			lease("shards", rqv1.RoleBorrowed, "b1", 1, noon)},
		Pods:         []*corev1.Pod{foreign},
		Reservations: []*rqv1.Reservation{&next},
	}
}

// drawn is how a fleet looks.
func drawn(t *testing.T, o *picture.Objects, style picture.Style) string {
	nodes := picture.FleetAt(o, defaults(t), noon, true)
	style.Letters = &picture.Letters{}
	for _, h := range picture.Holders(nodes) {
		style.Letters.Add(h.Run)
	}
	return picture.Text(nodes, style)
}

func TestTheFleetAsText(t *testing.T) {
	several := sample()
	several.Nodes = append(several.Nodes, in("T", "t1", 4, 4, func(n *corev1.Node) { n.Labels["gpu.flavor"] = "TPU" }))
	for name, text := range map[string]string{
		"plain":   drawn(t, sample(), picture.Style{}),
		"narrow":  drawn(t, sample(), picture.Style{Width: 48}),
		"colours": drawn(t, sample(), picture.Style{Colours: true}),
		"types":   drawn(t, several, picture.Style{}),
		"bars": picture.Bars([]published.Domain{
			{Values: []string{"west", "A"}, GPUType: "H100", GPUs: 128, Free: 40, Promised: 8, Nodes: 16, OutOfService: 1},
			{Values: []string{"west", "B10"}, GPUType: "TPU", GPUs: 8, Free: 8, Nodes: 1}}, 0),
	} {
		clitest.Golden(t, name, text)
	}
	for line := range strings.Lines(drawn(t, sample(), picture.Style{Width: 48})) {
		if len(line) > 49 && !strings.HasPrefix(line, "  node ") {
			t.Errorf("a line of %d columns: %q", len(line), line)
		}
	}
}

func TestDomains(t *testing.T) {
	want := []published.Domain{{Values: []string{"r", "c", ""}, GPUType: "H100", GPUs: 4, Nodes: 1, OutOfService: 1},
		{Values: []string{"r", "c", "A"}, GPUType: "H100", GPUs: 24, Nodes: 3, OutOfService: 1},
		{Values: []string{"r", "c", "B"}, GPUType: "H100", GPUs: 11, Free: 6, Nodes: 3, OutOfService: 1}}
	if diff := cmp.Diff(want, picture.Domains(picture.FleetAt(sample(), defaults(t), noon, true))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPromisesInWords(t *testing.T) {
	promises := picture.Promises(sample().Reservations)
	got := []string{promises[0].Words(noon), promises[0].Words(noon.Add(2 * time.Hour))}
	want := []string{"ns/next starts within 60m, on b1 b3", "ns/next starts now on b1 b3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A letter is one Run's; those for which none is left share a sign. Whoever goes gives his letter back.
func TestLetters(t *testing.T) {
	l := &picture.Letters{}
	seen := map[byte]string{}
	for i := range 26 {
		run := fmt.Sprintf("team/run-%d", i)
		l.Add(run)
		if other, taken := seen[l.Of(run)]; taken || l.Of(run) == '#' {
			t.Errorf("%s and %s both have %c", other, run, l.Of(run))
		}
		seen[l.Of(run)] = run
	}
	l.Add("team/one-more")
	if got := l.Of("team/one-more"); got != '#' {
		t.Errorf("the 27th Run has %c", got)
	}
	was := l.Of("team/run-3")
	l.Keep([]picture.Holder{{Run: "team/run-3"}})
	l.Add("team/one-more")
	if l.Of("team/run-3") != was || l.Of("team/one-more") != 'O' || l.Of("team/run-4") != '#' {
		t.Errorf("%c, %c, %c", l.Of("team/run-3"), l.Of("team/one-more"), l.Of("team/run-4"))
	}
}

// A thousand nodes are drawn in no time.
func TestALargeFleet(t *testing.T) {
	o := &picture.Objects{}
	for i := range 1000 {
		name := fmt.Sprintf("n%04d", i)
		o.Nodes = append(o.Nodes, in(fmt.Sprintf("d%02d", i/40), name, 8, 8))
		o.Leases = append(o.Leases, lease(fmt.Sprint("run-", i%60), rqv1.RoleActive, name, 6, noon))
	}
	began := time.Now()
	text := drawn(t, o, picture.Style{Width: 120})
	bars := picture.Bars(picture.Domains(picture.FleetAt(o, defaults(t), noon, true)), 0)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if lines := strings.Count(bars, "\n"); lines != 27 || !strings.Contains(bars, "80 of 320 GPUs free, 40 nodes") {
		t.Errorf("%d lines:\n%s", lines, bars)
	}
	if !strings.Contains(text, "# 34 other Runs") {
		t.Errorf("Runs without letters are not told:\n%s", text[len(text)-2000:])
	}
}
