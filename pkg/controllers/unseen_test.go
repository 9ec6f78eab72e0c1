package controllers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// TestAPodThatWasNeverSeen, as it has come and gone between two lists, is made again: its Run is looked at by itself
// once that the pod was made a moment ago is no reason any more to wait for it.
func TestAPodThatWasNeverSeen(t *testing.T) {
	c := newCluster(t)
	c.submit()
	c.podsHang = true
	looks := func(want bool) {
		t.Helper()
		got, err := c.look()
		if made := slices.Contains(got, thePods[0]); err != nil || made != want {
			t.Errorf("%v; the pod is made: %v, want %v", err, made, want)
		}
	}
	looks(true)
	if err := c.kube.CoreV1().Pods("ns").Delete(t.Context(), "train-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	q := &asked{heard: make(chan string, 10)}
	for _, was := range c.lanes.lines {
		was.ShutDown()
	}
	c.lanes = newLanes()
	for l, was := range c.lanes.lines {
		was.ShutDown()
		c.lanes.lines[l] = line[types.NamespacedName]{q}
	}
	looks(false)
	close(q.heard)
	var again []string
	for what := range q.heard {
		again = append(again, what)
	}
	if diff := cmp.Diff([]string{"again, in 1m30s"}, again); diff != "" {
		t.Errorf("its Run is looked at (-want +got):\n%s", diff)
	}
	c.clock.Step(3 * rememberedFor)
	looks(true)
}

// TestALeaseThatIsNotSeenToBeClosed is not closed again, nor told again until when it is open.
func TestALeaseThatIsNotSeenToBeClosed(t *testing.T) {
	lease := closed("b", "a")
	lease.Namespace, lease.UID, lease.Status = "ns", "lease", rqv1.LeaseStatus{}
	s, asked := newServer(t, lease), 0
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := interceptor.NewClient(s.kinds, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client,
		sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
		asked++
		return c.SubResource(sub).Update(ctx, o, options...)
	}})
	w := leaseWriter{book: book.New(args), client: kinds, lost: func([]string) {},
		unseen: &unseen{clock: clocktesting.NewFakeClock(noon)}}
	is := func(status rqv1.LeaseStatus, behind bool) *rqv1.Lease {
		if !behind {
			if err := s.kinds.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
				t.Fatal(err)
			}
		}
		told := lease.DeepCopy()
		told.Status = status
		return told
	}
	at, by := metav1.NewMicroTime(noon), metav1.NewMicroTime(noon.Add(time.Minute))
	open := rqv1.LeaseStatus{EndsBy: &at}
	longer := rqv1.LeaseStatus{EndsBy: &by}
	end := rqv1.LeaseStatus{Closed: true, Ended: &at, ClosureReason: rqv1.ClosedCompleted}
	for _, c := range []struct {
		what   string
		status rqv1.LeaseStatus
		behind bool
		want   int
	}{
		{"it is open for a while", open, false, 1}, {"and that is not seen", open, true, 0},
		{"it is open for longer", longer, false, 1}, {"and that is not seen", longer, true, 0},
		{"it is closed", end, false, 1}, {"and that is not seen", end, true, 0},
	} {
		asked = 0
		leases := []*rqv1.Lease{is(c.status, c.behind)}
		if c.status.Closed {
			_, err = w.CloseLeases(t.Context(), leases)
		} else {
			err = w.OutliveLeases(t.Context(), leases)
		}
		if err != nil || asked != c.want {
			t.Errorf("%s: %v, and the API server was asked %d times", c.what, err, asked)
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
