package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// braked is a fleet of nodes with GPUs whose kubelets have been heard, and what watches them.
type braked struct {
	*lossLimit
	clock *clocktesting.FakeClock
}

const broken = "GPUBroken"

func newBraked(t *testing.T, size int) *braked {
	args, err := config.Parse([]byte(`{nodeLossConditions: [` + broken + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	b := &braked{&lossLimit{book: book.New(args), seen: newNodeWatch(args), clock: clock}, clock}
	for i := range size {
		b.see(i)
		b.renew(i)
	}
	b.seen.contact.hear(true, clock.Now())
	return b
}

func (b *braked) see(index int, changes ...func(*corev1.Node)) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%02d", index)},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}
	for _, change := range changes {
		change(node)
	}
	b.book.SetNode(node)
	b.seen.setNode(node, b.clock.Now())
}

// node returns how a node is for a Run with a pod on it.
func (b *braked) node(name string) book.NodeState {
	look, _ := b.book.Look(book.Objects{Pods: []*corev1.Pod{{Spec: corev1.PodSpec{NodeName: name}}}})
	return look.Nodes[name]
}

func (b *braked) renew(index int) {
	now := b.clock.Now()
	b.seen.mu.Lock()
	defer b.seen.mu.Unlock()
	b.seen.sight(fmt.Sprintf("n%02d", index)).SeeHeartbeat(now, now)
}

// pass lets time go by in which all kubelets are heard from the one with an index on.
func (b *braked) pass(d time.Duration, from, nodes int) {
	b.clock.Step(d)
	for i := from; i < nodes; i++ {
		b.renew(i)
	}
	b.seen.contact.mu.Lock()
	b.seen.contact.last = b.clock.Now()
	b.seen.contact.mu.Unlock()
}

// suspects judges nodes by what was seen of them, whatever they hold.
func (b *braked) suspects(upTo int) []suspect {
	var out []suspect
	for i := range upTo {
		name := fmt.Sprintf("n%02d", i)
		if v := b.seen.verdict(name, b.clock.Now()); v.Lost {
			out = append(out, suspect{name, v})
		}
	}
	return out
}

// outOfService is what a person, or a cloud, says of a node.
func outOfService(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
}

func isBroken(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: broken, Status: corev1.ConditionTrue}}
}

// withoutPlugin is a node whose device plugin has died with it.
func withoutPlugin(n *corev1.Node) { n.Status.Capacity = nil }

// TestTooManySilentNodes has kubelets of 40 nodes fall silent: up to four are taken for lost, more are not, apart from
// one that somebody says is out of service. They are again when most have come back.
func TestTooManySilentNodes(t *testing.T) {
	b := newBraked(t, 40)
	b.pass(30*time.Second, 4, 40)
	if free := b.free(b.suspects(40), b.clock.Now()); len(free) != 4 {
		t.Errorf("of four silent nodes %v are taken for lost", free)
	}

	b = newBraked(t, 40)
	b.pass(9*time.Second, 16, 40)
	b.see(0, outOfService)
	b.see(1, withoutPlugin)
	b.pass(21*time.Second, 16, 40)
	if free := b.free(b.suspects(40), b.clock.Now()); len(free) != 1 || free[0].name != "n00" {
		t.Errorf("%v are taken for lost", free)
	}
	want := nodeloss.Signs{Shown: 15, Nodes: 40, Limit: 4}
	count, held := b.review(b.clock.Now())
	if diff := cmp.Diff(want, count); diff != "" || held != 15 || !b.node("n15").HeldBack ||
		b.node("n00").HeldBack {
		t.Errorf("%d are held back, by %s", held, diff)
	}
	b.pass(time.Second, 4, 40)
	count, held = b.review(b.clock.Now())
	if count.Shown != 3 || held != 0 || b.node("n01").HeldBack {
		t.Errorf("%d are held back for %s", held, count.Say())
	}
	if free := b.free(b.suspects(40), b.clock.Now()); len(free) != 4 {
		t.Errorf("afterwards %v are taken for lost", free)
	}
}

// TestSilentNodesThatWereHeardLastAtOtherTimes has nodes fall silent at once that renewed last at any time within ten
// seconds: the first of them to be due is not taken for lost.
func TestSilentNodesThatWereHeardLastAtOtherTimes(t *testing.T) {
	b := newBraked(t, 40)
	for i := range 10 {
		b.pass(time.Second, 0, 0)
		b.renew(i)
	}
	b.pass(21*time.Second, 10, 40)
	first := b.suspects(40)
	if len(first) != 1 {
		t.Fatalf("%v are due", first)
	}
	if free := b.free(first, b.clock.Now()); len(free) != 0 {
		t.Errorf("%v are taken for lost", free)
	}
}

// TestTooManyConditions has a condition appear on one node after the other: the first few are taken for lost at once,
// then each waits for what others show, and once too many do none is.
func TestTooManyConditions(t *testing.T) {
	b := newBraked(t, 60)
	free := func() (names []string) {
		for _, s := range b.free(b.suspects(60), b.clock.Now()) {
			names = append(names, s.name)
		}
		return names
	}
	for i, want := range [][]string{
		{"n00"}, {"n00", "n01"}, {"n00", "n01", "n02"}, nil, {"n00"}, {"n00", "n01"}, nil,
	} {
		b.see(i, isBroken)
		if diff := cmp.Diff(want, free()); diff != "" {
			t.Errorf("with %d that show it these are taken for lost (-want +got):\n%s", i+1, diff)
		}
		b.pass(1250*time.Millisecond, 0, 60)
	}
	if held := b.node("n06").HeldBack; !held {
		t.Error("one of seven is not held back")
	}
}

// TestNobodyListens has the API server not answer: what is held back stays so.
func TestNobodyListens(t *testing.T) {
	b := newBraked(t, 40)
	b.pass(30*time.Second, 16, 40)
	b.free(b.suspects(40), b.clock.Now())
	b.seen.contact.hear(false, b.clock.Now())
	if _, held := b.review(b.clock.Now()); held != 16 {
		t.Errorf("%d are held back", held)
	}
}
