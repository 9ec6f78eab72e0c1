package fence

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Policy is the admission policy that takes a GPU lease only of the process that leads. What has passed the fence of a
// process may be held up on its way, or the process be stopped before it sends it: the API server alone can tell then
// that another leads by now.
const Policy = "jobtree-leader"

// Outrun reports whether the API server has refused a GPU lease because it takes another process than the writer for
// the one that leads, or cannot tell yet, for which it says that the lease is invalid.
func Outrun(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), "'"+Policy+"'")
}

// A GPU lease is sent again after a first pause, then after pauses each twice as long, up to the longest: for two and a
// half seconds in all.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = firstPause << 7
)

// Signed returns a client that says on GPU leases which it creates who writes them. An API server hears of an election
// a moment after it is over: what it refuses for that is sent again, for some seconds, while leads says that this
// process leads. With no writer, as without an election, it returns the client as it is.
func Signed(c client.WithWatch, writer string, leads func() bool) client.WithWatch {
	if writer == "" {
		return c
	}
	return &signed{c, writer, leads}
}

type signed struct {
	client.WithWatch
	writer string
	leads  func() bool
}

// Create creates an object.
func (s *signed) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	lease, ok := o.(*rqv1.Lease)
	if !ok {
		return s.WithWatch.Create(ctx, o, options...)
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, rqv1.AnnotationWrittenBy, s.writer)
	for pause := firstPause; ; pause *= 2 {
		err := s.WithWatch.Create(ctx, lease, options...)
		if !Outrun(err) || !s.leads() || pause > longestPause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
