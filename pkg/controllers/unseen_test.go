package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// asked are the requests about pods that have been made since the last call, by their verbs.
func (s *server) asked() (verbs []string) {
	for _, action := range s.kube.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	s.kube.ClearActions()
	return verbs
}

// TestWhatACacheDoesNotShowYet has what was decided be carried out twice before the cache shows the first: the API
// server is asked once, and again when the cache has news or a while is over.
func TestWhatACacheDoesNotShowYet(t *testing.T) {
	s, clock := newServer(t), clocktesting.NewFakeClock(noon)
	later := 0
	seen := &unseen{clock: clock, later: func(types.NamespacedName, time.Duration) { later++ }}
	p := podWriter{kube: s.kube, clock: clock, untold: new(untold), unseen: seen}
	pod := rankOf(0, corev1.PodPending)
	pod.ResourceVersion = ""
	carry := func(after string, want []string, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", after, err)
		}
		if diff := cmp.Diff(want, s.asked()); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", after, diff)
		}
	}
	create := func() error { return p.CreatePods(t.Context(), []*corev1.Pod{pod.DeepCopy()}) }
	carry("a pod is made", []string{"create"}, create)
	carry("its making is not seen yet", nil, create)
	if later != 1 {
		t.Errorf("its Run is looked at again %d times once that is no reason any more", later)
	}
	again := pod.DeepCopy()
	again.OwnerReferences[0].UID = "another"
	seen.told(again)
	carry("another Run's pod of that name is seen", nil, create)
	seen.told(pod)
	carry("the cache has had news of it", []string{"create", "get"}, create)
	carry("it was there already, and may be gone again", []string{"create", "get"}, create)

	pod.ResourceVersion = "7"
	adopt := func(index string) func() error {
		return func() error {
			return p.AdoptPods(t.Context(), []lifecycle.Adoption{{Pod: pod,
				Labels: map[string]string{rqv1.LabelIndex: index}}})
		}
	}
	carry("it is adopted", []string{"patch"}, adopt("3"))
	carry("that is not seen yet", nil, adopt("3"))
	carry("it is to have another rank", []string{"patch"}, adopt("1"))
	end := func(grace *int64) func() error {
		return func() error {
			return p.DeletePods(t.Context(), []lifecycle.Deletion{{Pod: pod, GraceSeconds: grace}})
		}
	}
	carry("it is deleted", []string{"delete"}, end(nil))
	carry("that is not seen yet", nil, end(nil))
	carry("it is to go at once", []string{"delete"}, end(new(int64)))
	pod.ResourceVersion = "8"
	carry("the cache shows a later version", []string{"delete"}, end(nil))
	clock.Step(2*rememberedFor + time.Second)
	carry("it is not seen for long", []string{"delete"}, end(nil))
}

// TestALeaseThatIsNotSeenToBeClosed is not closed again.
func TestALeaseThatIsNotSeenToBeClosed(t *testing.T) {
	lease := closed("b", "a")
	lease.Namespace, lease.UID, lease.Status = "ns", "lease", rqv1.LeaseStatus{}
	s := newServer(t, lease)
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := leaseWriter{book: book.New(args), client: s.kinds, lost: func([]string) {},
		unseen: &unseen{clock: clocktesting.NewFakeClock(noon)}}
	if err := s.kinds.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewMicroTime(noon)
	lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &at, ClosureReason: rqv1.ClosedCompleted}
	s.written()
	for _, want := range [][]string{{"update status leases a"}, nil} {
		if _, err := w.CloseLeases(t.Context(), []*rqv1.Lease{lease.DeepCopy()}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.written()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestNewsThatComesBeforeTheAnswer: a pod is made, seen and gone before the API server has answered.
func TestNewsThatComesBeforeTheAnswer(t *testing.T) {
	seen, pod := &unseen{clock: clocktesting.NewFakeClock(noon)}, rankOf(0, corev1.PodPending)
	made := func() error { seen.told(pod); return nil }
	if err := seen.once(making(pod), made); err != nil || seen.has(making(pod)) {
		t.Errorf("%v; the pod is not made again: %v", err, seen.has(making(pod)))
	}
	if err := seen.once(making(pod), func() error { return broken500 }); err == nil || seen.has(making(pod)) {
		t.Errorf("%v; what failed counts as made: %v", err, seen.has(making(pod)))
	}
}
