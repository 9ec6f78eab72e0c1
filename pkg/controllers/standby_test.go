package controllers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// A process that stands by keeps neither the names of Runs that come and go nor the pods that end. When it begins to
// decide it looks at all there is, once.
func TestStandbyKeepsNothingOfWhatIsGone(t *testing.T) {
	c := &reconciler{watches: newWatches(nil, fake.NewClientset()), lanes: newLanes()}
	left := metav1.ObjectMeta{Namespace: "ns", Name: "x-0", UID: "x", Labels: map[string]string{rqv1.LabelRun: "left"}}
	for _, err := range []error{
		c.watches.runs.GetStore().Add(runAt("1")), c.watches.pods.GetStore().Add(&corev1.Pod{ObjectMeta: left}),
		c.watches.leases.GetStore().Add(&rqv1.Lease{ObjectMeta: left,
			Spec: rqv1.LeaseSpec{RunRef: rqv1.LeaseRunRef{Namespace: "ns", Name: "owes"}}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ended := &corev1.Pod{ObjectMeta: left}
	c.changed(types.NamespacedName{Namespace: "ns", Name: "gone"}, lane.End)
	c.tellGone(ended)
	if c.gone.has(runOfPod(ended), ended.UID) {
		t.Errorf("a pod that ended while another process led is remembered")
	}
	c.begin()
	var got []string
	for _, l := range []lane.Lane{lane.Begins, lane.Begins, lane.Frees} {
		run, work, _ := c.lanes.next(l)
		got = append(got, run.String())
		c.lanes.done(run, work)
	}
	if slices.Sort(got); !cmp.Equal(got, []string{"ns/left", "ns/owes", "ns/train"}) {
		t.Errorf("looked at %v", got)
	}
	c.lanes.shutDown()
	for _, l := range lane.All {
		if run, _, shut := c.lanes.next(l); !shut {
			t.Errorf("looked at %v as well", run)
		}
	}
}

// Of the pods that have ended those are remembered whose Leases are open.
func TestEndedPodsAreForgottenWithTheirLeases(t *testing.T) {
	c := &reconciler{}
	c.decides.Store(true)
	for _, uid := range []types.UID{"a", "b"} {
		c.tellGone(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: uid, Labels: map[string]string{rqv1.LabelRun: "train"}}})
	}
	c.gone.keep(train, []*rqv1.Lease{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{rqv1.LabelPodUID: "b"}}}})
	if got := []bool{c.gone.has(train, "a"), c.gone.has(train, "b")}; !cmp.Equal(got, []bool{false, true}) {
		t.Errorf("remembered: %v", got)
	}
	if c.gone.keep(train, nil); len(c.gone.pods) > 0 {
		t.Errorf("remembered: %v", c.gone.pods)
	}
}
