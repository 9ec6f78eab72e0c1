package lifecycle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestHeldBack has a Run tell that the loss of its nodes is held back, once, and that it is not any more.
func TestHeldBack(t *testing.T) {
	o := scene(func(o *Observed) {
		started(o)
		o.pods("n0", "n1", "n2", "n3")
	})
	held := func() *metav1.Condition {
		if d := Decide(o); d.Status != nil {
			o.Run.Status = *d.Status
		}
		return meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionNodesHeldBack)
	}
	if c := held(); c != nil {
		t.Errorf("without reason: %+v", c)
	}
	o.Nodes["n2"], o.Nodes["n0"] = book.NodeState{Stands: true, HeldBack: true},
		book.NodeState{Stands: true, HeldBack: true}
	if c := held(); c == nil || c.Status != metav1.ConditionTrue ||
		!strings.Contains(c.Message, ": n0 n2. If a node is really gone") {
		t.Errorf("held back: %+v", c)
	}
	if d := Decide(o); d.Status != nil {
		t.Errorf("it is told again: %+v", d.Status)
	}
	o.Nodes["n2"], o.Nodes["n0"] = book.NodeState{Stands: true}, book.NodeState{Stands: true}
	if c := held(); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("afterwards: %+v", c)
	}
}
