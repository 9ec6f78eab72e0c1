package reconcile

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// TestClosings has Leases closed of pods that the cache holds, lacks, and lacks wrongly.
func TestClosings(t *testing.T) {
	at := func(rank string, ended time.Time) lifecycle.Closing {
		c := closing(rank)
		c.Ended = ended
		return c
	}
	doubted := func(rank, node string) lifecycle.Closing {
		c := closing(rank)
		c.If, c.Reason, c.Lease.Spec.Slice.Nodes = lifecycle.NodeStands, rqv1.ClosedDeleted, []rqv1.NodeGPUs{{Name: node}}
		return c
	}
	for name, c := range map[string]struct {
		closings []lifecycle.Closing
		alive    map[types.UID]bool
		no       map[string]bool
		err      error
		want     []string
		behind   bool
	}{
		"none": {},
		"of seen pods": {closings: []lifecycle.Closing{closing("1"), closing("9")},
			want: []string{"close train-1:Completed@0s train-9:Completed@0s"}},
		"at its time": {closings: []lifecycle.Closing{at("1", noon.Add(-time.Minute))},
			want: []string{"close train-1:Completed@-1m0s"}},
		"not before it": {closings: []lifecycle.Closing{at("1", noon.Add(-2*time.Hour))},
			want: []string{"close train-1:Completed@-1h0m0s"}},
		"of unseen pods": {closings: []lifecycle.Closing{closing("1"), closing("2"), closing("3")},
			alive: map[types.UID]bool{"uid2": true},
			want:  []string{"alive [uid2 uid3]", "close train-1:Completed@0s train-3:Completed@0s"}},
		"all alive": {closings: []lifecycle.Closing{closing("2")}, alive: map[types.UID]bool{"uid2": true},
			want: []string{"alive [uid2]"}},
		"of nodes that stand": {closings: []lifecycle.Closing{doubted("1", "a"), closing("9")},
			want: []string{"ask NodeStands(a)", "close train-1:Deleted@0s train-9:Completed@0s"}},
		"of a node that is lost, as no cache knows": {
			closings: []lifecycle.Closing{doubted("1", "a"), doubted("2", "b"), closing("9")}, no: map[string]bool{"b": true},
			want: []string{"ask NodeStands(a) NodeStands(b)", "close train-1:Deleted@0s train-9:Completed@0s"}, behind: true},
		"nobody answers": {closings: []lifecycle.Closing{closing("1"), closing("2")}, err: errAway,
			want: []string{"alive [uid2]"}},
	} {
		api := &recorder{alive: c.alive, no: c.no, fails: map[string]error{"alive": c.err}}
		o := observed()
		runs := New(nil, api, lifecycle.Rules{}, func() time.Time { return noon })
		_, behind, err := runs.closeLeases(t.Context(), &o, c.closings)
		if diff := cmp.Diff(c.want, api.calls); diff != "" || !errors.Is(err, c.err) || behind != c.behind {
			t.Errorf("%s: %v, behind %v (-want +got):\n%s", name, err, behind, diff)
		}
	}
}

// TestEpochs numbers ranks by Leases that closed just now and, where there are none, by the ledger.
func TestEpochs(t *testing.T) {
	lease := func(run types.UID, role rqv1.LeaseRole, rank, epoch string) *rqv1.Lease {
		l := leaseOf(rank)
		l.Labels[rqv1.LabelRole], l.Spec.RunRef.UID = string(role), run
		if l.Labels[rqv1.LabelEpoch] = epoch; epoch == "" {
			delete(l.Labels, rqv1.LabelEpoch)
		}
		return l
	}
	outlived := lease("run", rqv1.RoleActive, "2", "0")
	outlived.Status.EndsBy = &metav1.MicroTime{}
	ledger := []map[string]string{{rqv1.LabelIndex: "2", rqv1.LabelEpoch: "3"},
		{rqv1.LabelIndex: "2", rqv1.LabelEpoch: "1"}}
	for name, c := range map[string]struct {
		first      bool
		closed     []*rqv1.Lease
		pods, want []string
		calls      []string
	}{
		"a new Run": {first: true, pods: []string{"0", "2"}, want: []string{"0", "0"}},
		"one without": {closed: []*rqv1.Lease{lease("run", rqv1.RoleActive, "0", "")}, pods: []string{"0"},
			want: []string{"1"}},
		"closed just now": {pods: []string{"0", "1"}, want: []string{"10", "11"},
			closed: []*rqv1.Lease{lease("run", rqv1.RoleActive, "0", "9"), lease("run", rqv1.RoleActive, "1", "9"),
				lease("run", rqv1.RoleActive, "1", "10")}},
		"by the ledger": {pods: []string{"0", "2"}, want: []string{"1", "4"},
			closed: []*rqv1.Lease{lease("run", rqv1.RoleActive, "0", "0")},
			calls:  []string{"ranks 2"}},
		"not by a spare's, or another Run's": {pods: []string{"2"}, want: []string{"4"}, calls: []string{"ranks 2"},
			closed: []*rqv1.Lease{lease("run", rqv1.RoleSpare, "2", "5"), lease("another", rqv1.RoleActive, "2", "5")}},
		"not by one that was open for a pod that was gone": {pods: []string{"2"}, want: []string{"4"},
			closed: []*rqv1.Lease{outlived}, calls: []string{"ranks 2"}},
		"of nothing": {closed: []*rqv1.Lease{lease("run", rqv1.RoleActive, "0", "0")}},
	} {
		api := &recorder{ranks: ledger}
		var pods []*corev1.Pod
		for _, rank := range c.pods {
			pods = append(pods, podOf(rank))
		}
		if err := New(nil, api, lifecycle.Rules{}, nil).numberEpochs(t.Context(), observed().Run, pods, c.closed,
			c.first); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pods {
			got = append(got, p.Labels[rqv1.LabelEpoch])
		}
		if diff := cmp.Diff([][]string{c.want, c.calls}, [][]string{got, api.calls}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestASpareHasNoEpoch: it is no rank.
func TestASpareHasNoEpoch(t *testing.T) {
	spare := podOf("0")
	delete(spare.Labels, rqv1.LabelEpoch)
	if err := New(nil, &recorder{}, lifecycle.Rules{}, nil).numberEpochs(t.Context(), observed().Run, []*corev1.Pod{spare},
		nil, false); err != nil {
		t.Fatal(err)
	}
	if epoch, has := spare.Labels[rqv1.LabelEpoch]; has {
		t.Errorf("a spare has the epoch %q", epoch)
	}
}

// TestPasses tells failures to make the replacements of lost ranks apart: the Leases by which the loss is known stay
// open as long as the replacements may still be made.
func TestPasses(t *testing.T) {
	for name, c := range map[string]struct {
		problem error
		passes  bool
	}{
		"no failure": {nil, false},
		"a quota":    {errQuota, false},
		"a webhook that gives no code": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: "denied the request"}}, false},
		"an API server that has not read its roles": {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "",
			errors.New(`User "scheduler" cannot create resource "pods"`)), true},
		"a webhook that denies": {&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "denied the request"}}, false},
		"a template nobody takes": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "run-0", nil), false},
		"one of several is taken": {errors.Join(NameTaken{}, context.Canceled), false},
		"what etcd does not take": {apierrors.NewInternalError(errors.New("etcdserver: request is too large")), false},
		"an API server in need":   {apierrors.NewTooManyRequests("later", 1), true},
		"a time-out":              {context.DeadlineExceeded, true},
		"one that does not lead":  {errors.Join(errors.New("this process does not lead")), true},
	} {
		if got := Passes(c.problem); got != c.passes {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestALongProblemIsRemembered by its beginning.
func TestALongProblemIsRemembered(t *testing.T) {
	r, o := New(nil, &recorder{}, lifecycle.Rules{}, nil), observed()
	r.note(&o, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-0",
		errors.New(strings.Repeat("ö=", 20000))))
	got := r.problemOf(o.Name)
	begins := `the API server rejects the Run's pods: pods "train-0" is forbidden: ö=ö`
	if len(got) > longestNote || !strings.HasPrefix(got, begins) {
		t.Errorf("%d bytes are remembered: %.200s", len(got), got)
	}
}

// longestNote is how many bytes an event may say.
const longestNote = 1024

// TestWhatACacheDoesNotKnowYet is looked at again, also when nothing tells of it.
func TestWhatACacheDoesNotKnowYet(t *testing.T) {
	c := closing("1")
	c.If, c.Reason, c.Lease.Spec.Slice.Nodes = lifecycle.NodeStands, rqv1.ClosedDeleted, []rqv1.NodeGPUs{{Name: "a"}}
	api := &recorder{no: map[string]bool{"a": true}}
	runs := New(nil, api, lifecycle.Rules{}, func() time.Time { return noon })
	out, err := runs.CarryOut(t.Context(), observed(), lifecycle.Decision{Close: []lifecycle.Closing{c},
		Create: []*corev1.Pod{podOf("1")}, After: time.Hour, Retry: time.Second})
	if diff := cmp.Diff(Outcome{After: behindRest, Retry: time.Second}, out); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"ask NodeStands(a)"}, api.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAPodThatDoesNotGoHoldsUpNoLease of another pod, which is gone.
func TestAPodThatDoesNotGoHoldsUpNoLease(t *testing.T) {
	api := &recorder{fails: map[string]error{
		"delete": apierrors.NewInternalError(errors.New("etcdserver: request is too large"))}}
	runs, _ := deciding(t, api, submitted("run"))
	_, _ = runs.CarryOut(t.Context(), observed(), lifecycle.Decision{
		Delete: []lifecycle.Deletion{{Pod: podOf("9")}}, Close: []lifecycle.Closing{closing("1")}})
	want := []string{"delete train-9:own", "close train-1:Completed@0s"}
	if diff := cmp.Diff(want, api.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAway tells what may go well the next time from what is refused, of several things that failed.
func TestAway(t *testing.T) {
	full := apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
	webhook := apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c"`))
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing": {}, "it is away": {errAway, true}, "refused": {errors.Join(errQuota, full, webhook), false},
		"some refused": {errors.Join(nil, errors.Join(full, errAway)), true},
	} {
		if got := away(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
