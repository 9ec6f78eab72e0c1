package nodeloss

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// FuzzRecorded: whoever may annotate nodes may write anything as the record of a loss. A cordoned node with any record
// is lost, one that is not cordoned is not, and the instant of a record of ours is read as it was written.
func FuzzRecorded(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, cordoned bool, at int64) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{rqv1.AnnotationLost: text}}}
		node.Spec.Unschedulable = cordoned
		if _, lost := Recorded(node); lost != cordoned || Forgiven(node) == cordoned {
			t.Errorf("record %q, cordoned %v: lost %v, forgiven %v", text, cordoned, lost, Forgiven(node))
		}
		when := time.Unix(0, at).UTC()
		node.Annotations[rqv1.AnnotationLost] = Record(Verdict{Lost: true, Reason: Condition, Message: text}, when)
		if got, lost := Recorded(node); lost && !got.Equal(when) {
			t.Errorf("record %q is of %s, not %s", node.Annotations[rqv1.AnnotationLost], got, when)
		}
	})
}
