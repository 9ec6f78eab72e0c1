package fence

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// answers is an API server that answers creations one after the other, the last answer again and again.
type answers struct {
	client.WithWatch
	left []error
	// asked counts the requests, and signature is on the last.
	asked     int
	signature string
}

func (a *answers) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	a.asked, a.signature = a.asked+1, o.GetAnnotations()[rqv1.AnnotationWrittenBy]
	answer := a.left[0]
	if len(a.left) > 1 {
		a.left = a.left[1:]
	}
	return answer
}

// TestSigned has GPU leases be created by a process of which the API server knows, sooner or later, that it leads.
func TestSigned(t *testing.T) {
	says := func(what string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "l", errors.New(what))
	}
	other := says("ValidatingAdmissionPolicy 'theirs' with binding 'theirs' denied request: no")
	behind := says("ValidatingAdmissionPolicy 'jobtree-leader' with binding 'jobtree-leader' denied request: a leads")
	for name, test := range map[string]struct {
		answers []error
		until   time.Duration // for how long this process leads
		asker   time.Duration // for how long an answer is waited for
		want    error
		asked   int
		after   time.Duration
	}{
		"it is known":              {[]error{nil}, time.Hour, time.Hour, nil, 1, 0},
		"it is known in a moment":  {[]error{behind, behind, nil}, time.Hour, time.Hour, nil, 3, 30 * time.Millisecond},
		"it never is":              {[]error{behind}, time.Hour, time.Hour, behind, 9, 2550 * time.Millisecond},
		"it leads no more":         {[]error{behind}, 0, time.Hour, behind, 1, 0},
		"it soon leads no more":    {[]error{behind}, 65 * time.Millisecond, time.Hour, behind, 4, 70 * time.Millisecond},
		"nobody waits any more":    {[]error{behind}, time.Hour, 65 * time.Millisecond, behind, 3, 65 * time.Millisecond},
		"another rule is against":  {[]error{other}, time.Hour, time.Hour, other, 1, 0},
		"one after the other is":   {[]error{behind, other}, time.Hour, time.Hour, other, 2, 10 * time.Millisecond},
		"it is written already":    {[]error{exists}, time.Hour, time.Hour, exists, 1, 0},
		"there is no answer to it": {[]error{context.DeadlineExceeded}, time.Hour, time.Hour, context.DeadlineExceeded, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.asker)
				defer cancel()
				began, server := time.Now(), &answers{left: test.answers}
				c := Signed(server, "ns/election/me", func() bool { return time.Since(began) < test.until })
				err := c.Create(ctx, &rqv1.Lease{})
				if !errors.Is(err, test.want) {
					t.Errorf("answers %v, want %v", err, test.want)
				}
				got := []any{server.asked, time.Since(began), server.signature}
				if diff := cmp.Diff([]any{test.asked, test.after, "ns/election/me"}, got); diff != "" {
					t.Errorf("requests, time and signature (-want +got):\n%s", diff)
				}
			})
		})
	}
}

var exists = apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, "l")

// TestNothingElseIsSigned neither other kinds nor what a process without an election writes.
func TestNothingElseIsSigned(t *testing.T) {
	for name, test := range map[string]struct {
		writer string
		object client.Object
	}{
		"a Reservation":       {"ns/election/me", &rqv1.Reservation{}},
		"without an election": {"", &rqv1.Lease{}},
	} {
		server := &answers{left: []error{nil}}
		err := Signed(server, test.writer, func() bool { return true }).Create(t.Context(), test.object)
		if err != nil || server.asked != 1 || server.signature != "" {
			t.Errorf("%s: %v, %d requests, signed by %q", name, err, server.asked, server.signature)
		}
	}
}
