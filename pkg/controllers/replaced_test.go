package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// A Run's status tells for a day of ranks that a node has turned away. The machine that comes under its name meanwhile
// is not suspect for that.
func TestANodeThatIsReplacedIsNotSuspect(t *testing.T) {
	for name, c := range map[string]struct {
		made    time.Duration // before noon
		suspect bool
	}{"the same node": {time.Hour, true}, "as it was made": {time.Minute, true}, "another since": {time.Second, false}} {
		args, err := config.Parse(nil)
		if err != nil {
			t.Fatal(err)
		}
		node := nodeOf8("n")
		node.CreationTimestamp = metav1.NewTime(noon.Add(-c.made))
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"}}
		run.Status.Deaths = []rqv1.RunDeath{{Pod: "pod", Node: "n", Cause: rqv1.CauseNode, Sign: "UnexpectedAdmissionError",
			At: metav1.NewTime(noon.Add(-time.Minute))}}
		indexer := func(objects ...any) cache.SharedIndexInformer {
			out := cache.NewSharedIndexInformer(nil, nil, 0, cache.Indexers{})
			for _, o := range objects {
				if err := out.GetStore().Add(o); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
		kube := fake.NewSimpleClientset(node)
		s := newSuspects(&Options{Kube: kube, Args: args, Clock: clocktesting.NewFakeClock(noon),
			events: events.NewFakeRecorder(10)}, indexer(run), indexer(node))
		s.note(run)
		s.look(t.Context(), types.NamespacedName{Namespace: "ns", Name: "run"})
		stored, err := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, suspect := stored.Annotations[rqv1.AnnotationSuspect]; suspect != c.suspect {
			t.Errorf("%s: suspect %v, want %v", name, suspect, c.suspect)
		}
	}
}

// A node is deleted, and another comes under its name before it was judged, or while it is: what is seen of that is not
// forgotten, and nothing of what was seen before counts.
func TestANodeThatIsReplacedIsSeen(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen, grace := newNodeWatch(args), args.NodeLossGrace.Duration
	seen.contact.hear(true, noon.Add(2*grace))
	was := nodeOf8("n")
	was.UID = "was"
	was.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	seen.setNode(was, noon)
	seen.setHeartbeat(heartbeatOf("n", noon), noon)
	seen.removeNode("n")
	is := was.DeepCopy()
	is.UID = "is"
	seen.setNode(is, noon.Add(grace))
	seen.forget("n") // whoever judged it has read that it is gone
	for after, reason := range map[time.Duration]nodeloss.Reason{grace: "", 2 * grace: nodeloss.NotReady} {
		if v := seen.rules.Judge(seen.sights["n"], noon, noon.Add(after)); v.Reason != reason {
			t.Errorf("after %s it is %+v, want %q", after, v, reason)
		}
	}
	seen.removeNode("n")
	seen.forget("n")
	if s := seen.sights["n"]; s != nil {
		t.Errorf("it is gone, and %+v is known of it", s)
	}
}
