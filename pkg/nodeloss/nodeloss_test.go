package nodeloss

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rules = Rules{Grace: 20 * time.Second, Conditions: []string{"XIDError"}}
)

func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func node(changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func is(kind corev1.NodeConditionType, status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status,
			Message: "so it is"})
	}
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "v", Effect: corev1.TaintEffectNoExecute})
	}
}

func TestEvidence(t *testing.T) {
	ready, unready := is(corev1.NodeReady, corev1.ConditionTrue), is(corev1.NodeReady, corev1.ConditionFalse)
	unknown := is(corev1.NodeReady, corev1.ConditionUnknown)
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, c := range map[string]struct {
		see     func(s *Sight)
		contact time.Time
		at      int // seconds after noon
		want    Verdict
	}{
		"nothing seen": {func(*Sight) {}, noon, 100, Verdict{}},
		"deleted": {func(s *Sight) { s.SeeNode(node(ready), noon); s.SeeDeletion() }, noon, 5,
			Verdict{Lost: true, Reason: Deleted, Message: "the Node was deleted", Since: after(5)}},
		"deleted and there again":   {func(s *Sight) { s.SeeDeletion(); s.SeeNode(node(ready), noon) }, noon, 5, Verdict{}},
		"healthy":                   {func(s *Sight) { s.SeeNode(node(ready), noon) }, noon, 1000, Verdict{}},
		"without a condition Ready": {func(s *Sight) { s.SeeNode(node(), noon) }, noon, 1000, Verdict{}},
		"cordoned alone":            {func(s *Sight) { s.SeeNode(node(ready, cordoned), noon) }, noon, 1000, Verdict{}},
		"another taint": {func(s *Sight) { s.SeeNode(node(ready, tainted("maintenance")), noon) }, noon, 1000,
			Verdict{}},
		"out of service": {func(s *Sight) { s.SeeNode(node(ready, tainted(corev1.TaintNodeOutOfService)), noon) }, noon, 1,
			Verdict{Lost: true, Reason: OutOfService, Message: "taint node.kubernetes.io/out-of-service=v", Since: after(1)}},
		"a condition that is listed": {func(s *Sight) { s.SeeNode(node(ready, is("XIDError", corev1.ConditionTrue)), noon) },
			noon, 5,
			Verdict{Lost: true, Reason: Condition, Message: "condition XIDError is True: so it is", Since: noon}},
		"which others may show in a moment": {
			func(s *Sight) { s.SeeNode(node(ready, is("XIDError", corev1.ConditionTrue)), noon) }, noon, 4,
			Verdict{Lost: true, Reason: Condition, Message: "condition XIDError is True: so it is", Since: noon,
				Again: after(5)}},
		"which was False in between": {func(s *Sight) {
			s.SeeNode(node(ready, is("XIDError", corev1.ConditionTrue)), noon)
			s.SeeNode(node(ready), after(3))
			s.SeeNode(node(ready, is("XIDError", corev1.ConditionTrue)), after(4))
		}, noon, 6, Verdict{Lost: true, Reason: Condition, Message: "condition XIDError is True: so it is", Since: after(4),
			Again: after(9)}},
		"which another event repeats": {func(s *Sight) {
			s.SeeNode(node(ready, is("XIDError", corev1.ConditionTrue)), noon)
			s.SeeNode(node(ready, is("XIDError", corev1.ConditionTrue)), after(4))
		}, noon, 5, Verdict{Lost: true, Reason: Condition, Message: "condition XIDError is True: so it is", Since: noon}},
		"which is not True": {func(s *Sight) { s.SeeNode(node(ready, is("XIDError", corev1.ConditionUnknown)), noon) },
			noon, 100, Verdict{}},
		"one that is not listed": {func(s *Sight) { s.SeeNode(node(ready, is("Hot", corev1.ConditionTrue)), noon) }, noon,
			100, Verdict{}},
		"not Ready for too short": {func(s *Sight) { s.SeeNode(node(unready), noon) }, noon, 19, Verdict{Again: after(20)}},
		"not Ready for too long": {func(s *Sight) { s.SeeNode(node(unready), noon) }, noon, 20,
			Verdict{Lost: true, Reason: NotReady, Message: "the condition Ready has not been True for 20s", Since: noon}},
		"not known to be Ready": {func(s *Sight) { s.SeeNode(node(unready), noon); s.SeeNode(node(unknown), after(10)) },
			noon, 21,
			Verdict{Lost: true, Reason: NotReady, Message: "the condition Ready has not been True for 21s", Since: noon}},
		"a flap": {func(s *Sight) {
			s.SeeNode(node(unready), noon)
			s.SeeNode(node(ready), after(19))
			s.SeeNode(node(unready), after(20))
		}, noon, 30, Verdict{Again: after(40)}},
		"heartbeats": {func(s *Sight) {
			s.SeeNode(node(ready), noon)
			s.SeeHeartbeat(noon, noon)
			s.SeeHeartbeat(after(10), after(10))
		}, noon, 29, Verdict{Again: after(30)}},
		"silence": {func(s *Sight) {
			s.SeeNode(node(ready), noon)
			s.SeeHeartbeat(noon, noon)
			s.SeeHeartbeat(noon, after(15)) // another list, the same renewal
		}, noon, 20, Verdict{Lost: true, Reason: Stale, Message: "the kubelet has not renewed its lease for 20s",
			Since: noon}},
		"a kubelet whose clock is wrong": {func(s *Sight) {
			s.SeeNode(node(ready), noon)
			s.SeeHeartbeat(after(-3600), noon)
		}, noon, 10, Verdict{Again: after(20)}},
		"a kubelet lease that is deleted": {func(s *Sight) {
			s.SeeNode(node(ready), noon)
			s.SeeHeartbeat(noon, noon)
			s.LoseHeartbeat()
		}, noon, 1000, Verdict{}},
		"silence while nothing could be heard": {func(s *Sight) {
			s.SeeNode(node(ready), noon)
			s.SeeHeartbeat(noon, noon)
		}, after(90), 100, Verdict{Again: after(110)}},
		"the sooner of two signs": {func(s *Sight) {
			s.SeeNode(node(ready), noon)
			s.SeeHeartbeat(noon, noon)
			s.SeeNode(node(unready), after(5))
		}, noon, 10, Verdict{Again: after(20)}},
	} {
		var s Sight
		c.see(&s)
		if diff := cmp.Diff(c.want, rules.Judge(&s, c.contact, after(c.at))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRecord(t *testing.T) {
	record := Record(Verdict{Lost: true, Reason: Stale, Message: "silent"}, noon)
	if want := "2026-03-01T12:00:00Z KubeletLeaseStale silent"; record != want {
		t.Errorf("record %q, want %q", record, want)
	}
	for name, c := range map[string]struct {
		annotation     string
		cordoned       bool
		at             time.Time
		lost, forgiven bool
	}{
		"recorded":             {record, true, noon, true, false},
		"uncordoned by person": {record, false, time.Time{}, false, true},
		"written by a person":  {"broken", true, time.Time{}, true, false},
		"cordoned alone":       {"", true, time.Time{}, false, false},
	} {
		n := node(func(n *corev1.Node) { n.Spec.Unschedulable = c.cordoned })
		if c.annotation != "" {
			n.Annotations = map[string]string{rqv1.AnnotationLost: c.annotation}
		}
		if at, lost := Recorded(n); !at.Equal(c.at) || lost != c.lost || Forgiven(n) != c.forgiven {
			t.Errorf("%s: lost %v at %s, forgiven %v", name, lost, at, Forgiven(n))
		}
	}
}
