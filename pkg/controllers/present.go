package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/fence"
)

// presents is how often, at intervals of a second and of what the answers take, a process that leads asks to be
// taken for the leader. An API server that has not heard of the election by then may never do so, and another
// process may be connected to one that has.
const presents = 20

// readOnceLed reads the ledger as read does, again until it succeeds or the context ends, which is no error. It returns
// an error where the API server goes on to take this process for none that leads.
func (l *ledger) readOnceLed(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	for unheard := 0; ; {
		err := l.read(ctx)
		if err == nil {
			return nil
		}
		logger.Error(err, "Reading the ledger")
		unheard++
		if !fence.Outrun(err) {
			unheard = 0
		}
		if unheard == presents {
			return fmt.Errorf("giving the lead away: %w", err)
		}
		if !pause(ctx, l.clock, time.Second) {
			return nil
		}
	}
}

// present returns once the API server takes this process for the one that leads, which it shows by a Lease that is not
// stored. From then on it takes no Lease any more that a predecessor has sent and that arrives late, so that all which
// there will ever be of them can be read. Whatever else it has against that Lease holds up nobody: it has answered.
func (l *ledger) present(ctx context.Context) error {
	err := l.client.Create(ctx, &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "who-leads"},
		Spec: rqv1.LeaseSpec{
			Owner: "org", RunRef: rqv1.LeaseRunRef{Name: "who-leads", Namespace: Namespace, UID: "who-leads"},
			Slice:          rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: "none", GPUs: 1}}},
			Payer:          rqv1.LeasePayer{Budget: "none", Owner: "org"},
			PaidByEnvelope: "none", Reason: rqv1.ReasonStart, Start: metav1.NewMicroTime(l.clock.Now()),
		},
	}, client.DryRunAll)
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) && !fence.Outrun(err) && !busy(err) {
		return nil
	}
	return fmt.Errorf("asking whether this process leads: %w", err)
}

// busy reports whether the API server has put off an answer.
func busy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err)
}
