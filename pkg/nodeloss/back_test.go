package nodeloss

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lostBy has a node be recorded as lost and cordoned by the scheduler.
func lostBy(record string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Annotations = map[string]string{rqv1.AnnotationLost: record, rqv1.AnnotationCordoned: "true"}
	}
}

func annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// cordonedBy has the API server tell who set the cordon.
func cordonedBy(managers ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, who := range append([]string{"kubelet"}, managers...) {
			fields := metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)
			if who == "kubelet" {
				fields = metav1.NewFieldsV1(`{"f:status":{"f:conditions":{}}}`)
			}
			n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: who, FieldsV1: fields})
		}
	}
}

// The record of a node that was lost by a condition.
func byXID() string {
	sick := node(is("XIDError", corev1.ConditionTrue))
	reason, message, _ := rules.Evident(sick)
	return Record(Verdict{Reason: reason, Message: message}, noon)
}

// TestBack says which lost nodes are given back without a person.
func TestBack(t *testing.T) {
	ready, well := is(corev1.NodeReady, corev1.ConditionTrue), is("XIDError", corev1.ConditionFalse)
	sick := is("XIDError", corev1.ConditionTrue)
	lost := lostBy(byXID())
	const never = -1
	for name, c := range map[string]struct {
		node []func(*corev1.Node)
		want int // seconds after noon
	}{
		"the sign is gone":          {[]func(*corev1.Node){lost, ready, well}, 5},
		"the checker is gone":       {[]func(*corev1.Node){lost, ready}, 5},
		"the sign is still there":   {[]func(*corev1.Node){lost, ready, sick}, never},
		"the checker does not know": {[]func(*corev1.Node){lost, ready, is("XIDError", corev1.ConditionUnknown)}, never},
		"not Ready": {[]func(*corev1.Node){lost, well, is(corev1.NodeReady, corev1.ConditionUnknown)},
			never},
		"without a condition Ready": {[]func(*corev1.Node){lost, well}, 5},
		"out of service": {[]func(*corev1.Node){lost, ready, well, tainted(corev1.TaintNodeOutOfService)},
			never},
		"another condition": {[]func(*corev1.Node){lostBy(Record(Verdict{Reason: Condition,
			Message: "condition Other is True: it is"}, noon)), ready, sick}, never},
		"a condition that is not listed any more": {[]func(*corev1.Node){lostBy(Record(Verdict{Reason: Condition,
			Message: "condition Other is True: it is"}, noon)), ready, is("Other", corev1.ConditionTrue)}, never},
		"lost by silence": {[]func(*corev1.Node){lostBy(Record(Verdict{Reason: Stale,
			Message: "condition XIDError is True: no"}, noon)), ready, well}, never},
		"lost by word": {[]func(*corev1.Node){lostBy(Record(Verdict{Reason: Administrator,
			Message: "condition XIDError is True: no"}, noon)), ready, well}, never},
		"in a person's words": {[]func(*corev1.Node){lostBy("the condition XIDError"), ready, well}, never},
		"in a person's message": {[]func(*corev1.Node){lostBy(noon.Format(time.RFC3339) + " NodeCondition hot"), ready, well},
			never},
		"cordoned before": {[]func(*corev1.Node){lost, ready, well, annotated(rqv1.AnnotationCordoned, "")},
			never},
		"uncordoned": {[]func(*corev1.Node){lost, ready, well, func(n *corev1.Node) { n.Spec.Unschedulable = false }},
			never},
		"kept by the checker": {[]func(*corev1.Node){lost, ready, well, annotated("quarantineHealthEventIsCordoned", "True")},
			never},
		"kept by the checker no more": {[]func(*corev1.Node){lost, ready, well,
			annotated("quarantineHealthEventIsCordoned", "")}, 5},
		"cordoned by the scheduler":      {[]func(*corev1.Node){lost, ready, well, cordonedBy(Writer)}, 5},
		"cordoned long ago":              {[]func(*corev1.Node){lost, ready, well, cordonedBy("ancient-changes")}, 5},
		"cordoned again, by a person":    {[]func(*corev1.Node){lost, ready, well, cordonedBy("kubectl-cordon")}, never},
		"cordoned by another as well":    {[]func(*corev1.Node){lost, ready, well, cordonedBy(Writer, "keeper")}, never},
		"a cordon of which none is told": {[]func(*corev1.Node){lost, ready, well, cordonedBy()}, 5},
	} {
		var s Sight
		s.SeeNode(node(c.node...), noon)
		want := time.Time{}
		if c.want != never {
			want = after(c.want)
		}
		if got := rules.Back(&s); !got.Equal(want) {
			t.Errorf("%s: from %s, want %s", name, got, want)
		}
	}
}

// TestBackOnceItIsQuiet has a sign come and go, and the node be deleted and made again.
func TestBackOnceItIsQuiet(t *testing.T) {
	lost, ready := lostBy(byXID()), is(corev1.NodeReady, corev1.ConditionTrue)
	sick, well := is("XIDError", corev1.ConditionTrue), is("XIDError", corev1.ConditionFalse)
	var s Sight
	if !rules.Back(&s).IsZero() {
		t.Error("a node that was never seen is given back")
	}
	for i, c := range []struct {
		at   int
		node *corev1.Node
		want int // 0 for never
	}{
		{0, node(lost, ready, sick), 0},
		{10, node(lost, ready, well), 15},
		{12, node(lost, ready, well), 15}, // another event repeats it
		{13, node(lost, ready, sick), 0},
		{14, node(lost, ready, well), 19},
		{16, node(lost, ready, well, is("Hot", corev1.ConditionTrue)), 21},
		{17, node(lost, ready, well, is("Cold", corev1.ConditionTrue)), 22},
	} {
		s.SeeNode(c.node, after(c.at))
		want := time.Time{}
		if c.want > 0 {
			want = after(c.want)
		}
		if got := rules.Back(&s); !got.Equal(want) {
			t.Errorf("%d: from %s, want %s", i, got, want)
		}
	}
	s.SeeDeletion()
	if !rules.Back(&s).IsZero() {
		t.Error("a node that is deleted is given back")
	}
}

// No node is given back that would be lost again at once, that nobody has recorded, or whose cordon is another's.
func TestWhatIsGivenBackIsWell(t *testing.T) {
	given := 0
	for seed := range 200 { // of which some are, whatever is drawn besides
		if rapid.Custom(isGivenBackWell).Example(seed) {
			given++
		}
	}
	if given == 0 {
		t.Error("no node was given back")
	}
	rapid.Check(t, func(t *rapid.T) { isGivenBackWell(t) })
}

// isGivenBackWell draws a node that was lost and reports whether it is given back.
func isGivenBackWell(t *rapid.T) bool {
	r, s, contact, _ := drawn(t)
	n := node(is(corev1.NodeReady, rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue,
		corev1.ConditionFalse}).Draw(t, "ready")))
	record := rapid.SampledFrom([]string{byXID(), byXID(), "broken",
		Record(Verdict{Reason: NotReady, Message: "for 30s"}, noon)}).Draw(t, "record")
	lostBy(record)(n)
	n.Spec.Unschedulable = rapid.IntRange(0, 4).Draw(t, "uncordoned") > 0
	if rapid.IntRange(0, 4).Draw(t, "cordoned before") == 0 {
		delete(n.Annotations, rqv1.AnnotationCordoned)
	}
	if sign := rapid.SampledFrom([]corev1.ConditionStatus{"", "", corev1.ConditionFalse, corev1.ConditionTrue,
		corev1.ConditionUnknown}).Draw(t, "sign"); sign != "" {
		is("XIDError", sign)(n)
	}
	now := noon.Add(time.Hour)
	s.SeeNode(n, now)
	s.SeeHeartbeat(now, now)
	back := r.Back(&s)
	if back.IsZero() {
		return false
	}
	_, recorded := Recorded(n)
	_, reason, _, _ := Told(n.Annotations[rqv1.AnnotationLost])
	if !recorded || reason != Condition || n.Annotations[rqv1.AnnotationCordoned] == "" {
		t.Fatalf("given back: %+v", n)
	}
	if v := r.Judge(&s, contact, now); v.Lost {
		t.Fatalf("given back although %+v", v)
	}
	if v := r.Judge(&s, contact, back); v.Lost && v.Reason == Condition {
		t.Fatalf("given back at %s although %+v", back, v)
	}
	return true
}
