package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// Changes are told once nothing has changed for as long as settle, but not later than patience after the first. The
// end of a watch waits for as long as settle for the last of them.
const (
	settle   = 300 * time.Millisecond
	patience = time.Second
)

var errTimeout = errors.New("the time given by --timeout has passed")

// follow shows what happens until the awaited end, the timeout or an interrupt. All changes pass through one
// goroutine.
func (w *runWatch) follow(ctx context.Context, c client.WithWatch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan func() error)
	post := func(change func() error) {
		select {
		case changes <- change:
		case <-ctx.Done():
		}
	}
	namespaces, err := w.followed(ctx, c)
	if err != nil {
		return err
	}
	for i, namespace := range namespaces {
		if err := w.followLeases(ctx, c, namespace, post); err != nil {
			return err
		}
		runs := w.runStream(c, namespace, i == 0, post)
		go func() {
			if err := runs.begin(ctx); err != nil {
				post(func() error { return err })
				return
			}
			runs.run(ctx)
		}()
	}
	return w.loop(ctx, changes)
}

// followed are the namespaces whose Runs are followed; "" alone for all of them. Who may not read all follows what they
// may read, as "list -A" lists it.
func (w *runWatch) followed(ctx context.Context, c client.Client) ([]string, error) {
	if !w.all {
		return []string{w.namespace}, nil
	}
	namespaces, lacks, err := w.Readable(ctx, c, &rqv1.Run{}, &rqv1.RunList{})
	if err == nil && len(namespaces) == 0 {
		err = session.Fail(session.ExitError, "%s; name a namespace with -n, or ask an administrator for the right", lacks)
	}
	if lacks != "" && len(namespaces) > 0 {
		w.TellRead(namespaces)
	}
	return namespaces, err
}

// followLeases begins to follow GPU leases, before the Runs are read, so that none opens unseen between the two. Runs
// are followed without them if they may not be read.
func (w *runWatch) followLeases(ctx context.Context, c client.WithWatch, namespace string,
	post func(func() error)) error {
	leases, err := w.leaseStream(c, namespace, post)
	if err != nil {
		return err
	}
	err = leases.begin(ctx)
	if apierrors.IsForbidden(err) {
		if w.report.countless {
			return nil // it has been said
		}
		w.report.countless = true
		fmt.Fprintf(w.ErrOut, "GPU leases are not followed: %s\n", session.Refusal(err))
		return nil
	}
	if err == nil {
		go leases.run(ctx)
	}
	return err
}

func (w *runWatch) loop(ctx context.Context, changes <-chan func() error) error {
	var quiet, end <-chan time.Time
	var first time.Time // when the first change came that is not told yet
	var outcome error
	for {
		select {
		case change := <-changes:
			if err := change(); err != nil && ctx.Err() == nil {
				return err
			}
			if len(w.report.queue) > 0 {
				if quiet == nil {
					first = time.Now()
				}
				quiet = time.After(min(settle, patience-time.Since(first)))
			}
			over, err := w.outcome()
			outcome = err
			if !over {
				end = nil
			} else if end == nil {
				end = time.After(settle)
			}
		case <-quiet:
			quiet = nil
			if err := w.report.flush(); err != nil {
				return err
			}
		case <-end:
			return cmp.Or(w.report.flush(), outcome)
		case <-ctx.Done():
			if err := w.report.flush(); err != nil {
				return err
			}
			if errors.Is(context.Cause(ctx), errTimeout) {
				return w.timedOut()
			}
			return ctx.Err()
		}
	}
}

// timedOut says how the named Runs stand that are still awaited.
func (w *runWatch) timedOut() error {
	message := fmt.Sprintf("timed out after %v", w.timeout)
	for _, name := range w.names {
		run := w.runs[types.NamespacedName{Namespace: w.namespace, Name: name}]
		if run != nil && !reached(w.phase, view.PhaseOf(run)) {
			message += fmt.Sprintf("; Run %s is %s: %s", w.Called(name), view.PhaseOf(run),
				session.LocalTimes(run.Status.Message, w.Now()))
		}
	}
	return session.Fail(session.ExitTimeout, "%s", message)
}
