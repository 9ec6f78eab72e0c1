package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var train = types.NamespacedName{Namespace: "ns", Name: "train"}

func runAt(version string) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: train.Namespace, Name: train.Name, UID: "run", ResourceVersion: version}}
}

// TestEpochAfterALeaseThatClosedJustNow numbers ranks without asking the API server: the controllers here have no client.
func TestEpochAfterALeaseThatClosedJustNow(t *testing.T) {
	lease := func(run types.UID, role rqv1.LeaseRole, rank, epoch string) *rqv1.Lease {
		l := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{rqv1.LabelRole: string(role), rqv1.LabelIndex: rank}}}
		if l.Spec.RunRef.UID = run; epoch != "" {
			l.Labels[rqv1.LabelEpoch] = epoch
		}
		return l
	}
	pod := func(rank, epoch string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train-" + rank, Labels: map[string]string{rqv1.LabelIndex: rank}}}
		if epoch != "" {
			p.Labels[rqv1.LabelEpoch] = epoch
		}
		return p
	}
	run := runAt("1")
	run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted}}
	pods := []*corev1.Pod{pod("0", "0"), pod("1", "0"), pod("0", "")} // the last one is a spare
	err := (&Controllers{}).numberEpochs(t.Context(), run, pods, []*rqv1.Lease{
		lease("run", rqv1.RoleActive, "0", ""), lease("run", rqv1.RoleActive, "1", "9"), lease("run", rqv1.RoleActive, "1", "10"),
		lease("run", rqv1.RoleSpare, "0", "5"), lease("another", rqv1.RoleActive, "0", "5"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pods {
		got = append(got, p.Labels[rqv1.LabelEpoch])
	}
	if diff := cmp.Diff([]string{"1", "11", ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEpochsOfNothing(t *testing.T) {
	if err := (&Controllers{}).numberEpochs(t.Context(), nil, nil, []*rqv1.Lease{{}}); err != nil {
		t.Error(err)
	}
}

// TestBehind writes a status and sees older and newer versions of the Run.
func TestBehind(t *testing.T) {
	c := &Controllers{}
	for _, step := range []struct {
		written string
		run     *rqv1.Run
		want    bool
	}{
		{"", runAt("5"), false},
		{"100", runAt("5"), true},
		{"", runAt("99"), true},
		{"", runAt("100"), false},
		{"", runAt("5"), false}, // what was seen once is not waited for again
		{"100", runAt("101"), false},
		{"100", nil, false},
		{"", runAt("5"), false}, // another Run of the name
	} {
		if step.written != "" {
			c.written.Store(train, step.written)
		}
		if got := c.behind(train, step.run); got != step.want {
			t.Errorf("written %q, run %v: behind %v, want %v", step.written, step.run, got, step.want)
		}
	}
}

func TestGone(t *testing.T) {
	g, other := gone{}, types.NamespacedName{Namespace: "ns", Name: "other"}
	g.keep(train, nil)
	g.add(train, "a")
	g.add(other, "b")
	if !g.has(train, "a") || g.has(train, "b") || !g.has(other, "b") {
		t.Error("the ends of pods are mixed up")
	}
	g.keep(train, nil)
	if g.has(train, "a") || !g.has(other, "b") {
		t.Error("forgotten is another than asked for")
	}
}
