package nodeloss

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestSign says which nodes count against the limit of nodes that show signs of loss at once.
func TestSign(t *testing.T) {
	ready, unready := is(corev1.NodeReady, corev1.ConditionTrue), is(corev1.NodeReady, corev1.ConditionFalse)
	broken := is("XIDError", corev1.ConditionTrue)
	lost := func(reason Reason, at int) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Annotations = map[string]string{rqv1.AnnotationLost: Record(Verdict{Reason: reason}, after(at))}
		}
	}
	silent := func(changes ...func(*corev1.Node)) func(*Sight) {
		return func(s *Sight) {
			s.SeeNode(node(changes...), noon)
			s.SeeHeartbeat(noon, noon)
		}
	}
	for name, c := range map[string]struct {
		grace   int
		see     func(s *Sight)
		contact int
		at      int
		want    bool
	}{
		"nothing seen":                        {30, func(*Sight) {}, 0, 1000, false},
		"deleted":                             {30, func(s *Sight) { silent(ready)(s); s.SeeDeletion() }, 0, 1000, false},
		"ten seconds before the grace":        {30, silent(ready), 0, 20, true},
		"not yet":                             {30, silent(ready), 0, 19, false},
		"a grace that is long":                {60, silent(ready), 0, 49, false},
		"a healthy kubelet and a short grace": {15, silent(ready), 0, 10, false},
		"a short grace":                       {15, silent(ready), 0, 11, true},
		"a very short grace":                  {5, silent(ready), 0, 5, true},
		"nobody listened":                     {30, silent(ready), 10, 29, false},
		"not Ready":                           {30, func(s *Sight) { s.SeeNode(node(unready), noon) }, 0, 20, true},
		"not Ready for a moment":              {30, func(s *Sight) { s.SeeNode(node(unready), noon) }, 0, 19, false},
		"a condition, at once":                {30, func(s *Sight) { s.SeeNode(node(ready, broken), noon) }, 0, 0, true},
		"out of service":                      {30, silent(ready, tainted(corev1.TaintNodeOutOfService)), 0, 100, false},
		"lost a moment ago":                   {30, silent(ready, lost(Stale, 30)), 0, 40, true},
		"lost a moment ago and back": {30, func(s *Sight) { s.SeeNode(node(ready, lost(Stale, 30)), noon) }, 0, 40,
			false},
		"lost for an hour": {30, silent(ready, lost(Stale, 30)), 0, 3630, false},
		"lost by word":     {30, silent(ready, lost(Administrator, 30)), 0, 40, false},
	} {
		var s Sight
		c.see(&s)
		r := Rules{Grace: time.Duration(c.grace) * time.Second, Conditions: []string{"XIDError"}}
		if got := r.Sign(&s, after(c.contact), after(c.at)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
