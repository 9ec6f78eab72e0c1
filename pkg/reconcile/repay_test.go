package reconcile

import (
	"errors"
	"fmt"
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
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// paidBy is the open Lease of a rank of train that a Budget pays for, since an hour.
func paidBy(of, budget string, relation rqv1.Relation) *rqv1.Lease {
	l := &rqv1.Lease{ObjectMeta: ranked(of)}
	l.Spec = rqv1.LeaseSpec{Owner: "org:a", RunRef: rqv1.LeaseRunRef{Namespace: "ns", Name: "train", UID: "run"},
		Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: "n" + of, GPUs: 8}}},
		Payer: rqv1.LeasePayer{Budget: budget, Relation: relation, Rate: "1"}, PaidByEnvelope: "e",
		Reason: rqv1.ReasonStart, Start: metav1.NewMicroTime(noon.Add(-time.Hour))}
	return l
}

// begun is train once an exchange has been begun, a minute ago, of which it is not known whether it is written.
func begun(t *testing.T, api *recorder) (*Runs, rank.Exchange) {
	t.Helper()
	low, high := paidBy("0", "lender", rqv1.RelationSponsor), paidBy("1", "own", rqv1.RelationOwn)
	x := rank.Exchanged(low, high, noon.Add(-time.Minute))
	runs, b := deciding(t, api)
	b.SetLease(low)
	b.SetLease(high)
	runs.exchanges.Store(train, repaying{first: x.Now[0].Key()})
	return runs, x
}

// TestABegunExchangeIsReadFirst: whether it has happened, and when, the API server says. One that has not is none any
// more, since its Leases may be closed by now.
func TestABegunExchangeIsReadFirst(t *testing.T) {
	otherwise := errors.New("is of another exchange")
	for name, c := range map[string]struct {
		stored func(x *rank.Exchange) []*rqv1.Lease
		leases func(x *rank.Exchange) []*rqv1.Lease
		want   []string
		left   []string
		err    error
	}{
		"it has not happened": {
			leases: func(x *rank.Exchange) []*rqv1.Lease { return x.Was[:] },
			want:   []string{"read train-0-2"}, left: []string{"train-0", "train-1"}},
		"nor will it, since one is lost": {
			leases: func(x *rank.Exchange) []*rqv1.Lease { return x.Was[1:] },
			want:   []string{"read train-0-2"}, left: []string{"train-1"}},
		"it has": {
			stored: func(x *rank.Exchange) []*rqv1.Lease { return x.Now[:1] },
			leases: func(x *rank.Exchange) []*rqv1.Lease { return x.Was[:] },
			want: []string{"read train-0-2", "find train-0-2", "open train-1-2@-1m0s",
				"close train-0:Repaid@-1m0s train-1:Repaid@-1m0s"}, left: []string{"train-0-2", "train-1-2"}},
		"and all but the ends is written": {
			stored: func(x *rank.Exchange) []*rqv1.Lease { return x.Now[:] },
			leases: func(x *rank.Exchange) []*rqv1.Lease { return append(x.Was[:], x.Now[1]) },
			want: []string{"read train-0-2", "find train-1-2", "find train-0-2", // either of the two tells of both
				"close train-1:Repaid@-1m0s train-0:Repaid@-1m0s"}, left: []string{"train-1-2", "train-0-2"}},
		"the other Lease is of something else": {
			stored: func(x *rank.Exchange) []*rqv1.Lease {
				is := x.Now[1].DeepCopy()
				is.Spec.Repaid.Lease = "another"
				return []*rqv1.Lease{x.Now[0], is}
			},
			leases: func(x *rank.Exchange) []*rqv1.Lease { return x.Was[:] },
			want:   []string{"read train-0-2", "find train-0-2", "find train-1-2"}, err: otherwise,
			left: []string{"train-0", "train-1", "train-0-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := &recorder{stored: map[string]*rqv1.Lease{}}
			runs, x := begun(t, api)
			if c.stored != nil {
				for _, l := range c.stored(&x) {
					api.stored[l.Name] = l
				}
			}
			objects := book.Objects{Name: train, Leases: c.leases(&x)}
			if _, _, err := runs.repay(t.Context(), &objects); (err != nil) != (c.err != nil) {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(c.want, api.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			var left []string
			for _, l := range objects.Leases {
				left = append(left, l.Name)
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("open Leases (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodsGoWhateverIsPaid: while the API server does not answer for an exchange pods are deleted that are to be, and
// no Lease closes.
func TestPodsGoWhateverIsPaid(t *testing.T) {
	for _, at := range []string{"read", "open", "close"} {
		api := &recorder{stored: map[string]*rqv1.Lease{}, fails: map[string]error{at: errAway}}
		runs, x := begun(t, api)
		if at != "read" {
			api.stored[x.Now[0].Name] = x.Now[0]
		}
		goes := podOf("1")
		goes.Labels[rqv1.LabelRunUID] = "run"
		objects := book.Objects{Name: train, Leases: x.Was[:], Pods: []*corev1.Pod{goes}}
		for range 2 {
			api.calls = nil
			if _, err := runs.Reconcile(t.Context(), objects, nil); !errors.Is(err, errAway) {
				t.Fatalf("%s: %v", at, err)
			}
			said := strings.Join(api.calls, "; ")
			if !strings.HasPrefix(said, "read train-0-2") || !strings.Contains(said, "delete train-1") ||
				strings.Contains(said, "Deleted") {
				t.Errorf("%s: %s", at, said)
			}
		}
	}
}

// TestARefusedExchangeRests, as of an API server whose definition of Leases is older, and keeps nothing else back.
func TestARefusedExchangeRests(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Lease"}, "train-0-2", nil)
	api := &recorder{fails: map[string]error{"open": invalid}}
	runs, _ := deciding(t, api)
	low, high := paidBy("0", "lender", rqv1.RelationSponsor), paidBy("1", "own", rqv1.RelationOwn)
	x := rank.Exchanged(low, high, noon)
	refusal, err := runs.exchange(t.Context(), &x)
	if !errors.Is(refusal, invalid) || err != nil {
		t.Fatalf("%v, %v", refusal, err)
	}
	if diff := cmp.Diff([]string{"open train-0-2@0s"}, api.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if gpus := runs.book.GPUsByRole()[rqv1.RoleActive]; gpus != 0 {
		t.Errorf("the book has Leases of %d GPUs", gpus)
	}
	if !refusesLease(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")) || refusesLease(errAway) {
		t.Error("what refuses a Lease, and what does not")
	}
}

// TestARefusedExchangeIsTold: who administers the cluster reads in an event why sponsors go on paying.
func TestARefusedExchangeIsTold(t *testing.T) {
	api := &recorder{stored: map[string]*rqv1.Lease{}}
	runs, x := begun(t, api)
	other := x.Now[0].DeepCopy()
	other.Spec.Repaid.Lease = "another"
	api.stored[other.Name] = other
	runs.exchanges.Delete(train)
	out, err := runs.Reconcile(t.Context(), book.Objects{Name: train, Leases: append(x.Was[:], x.Now[0])}, nil)
	const why = "Lease ns/train-0-2 is of something else"
	if err != nil || out.Unrepaid == nil || !strings.Contains(out.Unrepaid.Error(), why) ||
		out.After == 0 || out.After > repaidRest {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestExchangesOfManyLeaveTimeForAllElse: a Run of which hundreds of pods are to exchange payers is looked at again
// after each few of them.
func TestExchangesOfManyLeaveTimeForAllElse(t *testing.T) {
	var leases []*rqv1.Lease
	pairs := make([][2]types.NamespacedName, 3*exchangesAtOnce)
	for i := range pairs {
		low := paidBy(fmt.Sprint(2*i), "lender", rqv1.RelationSponsor)
		high := paidBy(fmt.Sprint(2*i+1), "own", rqv1.RelationOwn)
		leases, pairs[i] = append(leases, low, high), [2]types.NamespacedName{low.Key(), high.Key()}
	}
	due := exchangesOf(pairs, leases, noon)
	if len(due) != exchangesAtOnce || due[0].Was[0] != leases[0] {
		t.Errorf("%d exchanges at once", len(due))
	}
}
