package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// settle is how long GPU leases are collected into one line, and how long the end of a watch waits for the last of them.
const settle = 300 * time.Millisecond

var errTimeout = errors.New("the time given by --timeout has passed")

// follow shows what happens until the awaited end, the timeout or an interrupt. All changes pass through one goroutine.
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
	if w.printer == nil {
		leases, err := w.leaseStream(c, post)
		if err != nil {
			return err
		}
		// Before the Runs are read, so that no GPU lease opens unseen between the two.
		if err := leases.begin(ctx); err != nil {
			return err
		}
		go leases.run(ctx)
	}
	runs := w.runStream(c, post)
	go func() {
		if err := runs.begin(ctx); err != nil {
			post(func() error { return err })
			return
		}
		runs.run(ctx)
	}()
	return w.loop(ctx, changes)
}

func (w *runWatch) loop(ctx context.Context, changes <-chan func() error) error {
	var quiet, end <-chan time.Time
	var outcome error
	for {
		select {
		case change := <-changes:
			if err := change(); err != nil && ctx.Err() == nil {
				return err
			}
			if len(w.report.batches) == 0 {
				quiet = nil
			} else if quiet == nil {
				quiet = time.After(settle)
			}
			over, err := w.outcome()
			if outcome = err; !over {
				end = nil
			} else if end == nil {
				end = time.After(settle)
			}
		case <-quiet:
			quiet = nil
			w.report.flush()
		case <-end:
			w.report.flush()
			return outcome
		case <-ctx.Done():
			w.report.flush()
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
		if run != nil && !reached(w.phase, phaseOf(run)) {
			message += fmt.Sprintf("; Run %s is %s: %s", name, phaseOf(run), run.Status.Message)
		}
	}
	return fail(exitTimeout, "%s", message)
}

// runStream posts the Runs that exist and every change of them. A Run that a later list lacks was deleted meanwhile.
func (w *runWatch) runStream(c client.WithWatch, post func(func() error)) *stream {
	return &stream{
		client:  c,
		kind:    &rqv1.RunList{},
		options: []client.ListOption{client.InNamespace(w.namespace)},
		listed: func(list client.ObjectList) {
			runs := list.(*rqv1.RunList).Items
			post(func() error { return w.relisted(runs) })
		},
		changed: func(event watch.EventType, object client.Object) {
			run := object.(*rqv1.Run)
			post(func() error {
				if event == watch.Deleted {
					w.gone(run)
					return nil
				}
				return w.seen(run)
			})
		},
		lost: func(err error) {
			post(func() error {
				if err == nil {
					fmt.Fprintln(w.ErrOut, "The API server is back.")
				} else {
					fmt.Fprintf(w.ErrOut, "Lost the API server, trying again: %s\n", refusal(err))
				}
				return nil
			})
		},
	}
}

func (w *runWatch) relisted(runs []rqv1.Run) error {
	present := map[types.NamespacedName]bool{}
	for i := range runs {
		present[client.ObjectKeyFromObject(&runs[i])] = true
		if err := w.seen(&runs[i]); err != nil {
			return err
		}
	}
	var missing []*rqv1.Run
	for key, run := range w.runs {
		if !present[key] {
			missing = append(missing, run)
		}
	}
	slices.SortFunc(missing, func(a, b *rqv1.Run) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, run := range missing {
		w.gone(run)
	}
	return nil
}

// leaseStream posts the GPU leases that open or close from now on.
func (w *runWatch) leaseStream(c client.WithWatch, post func(func() error)) (*stream, error) {
	options := []client.ListOption{client.InNamespace(w.namespace)}
	if len(w.names) > 0 {
		ofRuns, err := labels.NewRequirement(rqv1.LabelRun, selection.In, w.names)
		if err != nil {
			return nil, err
		}
		options = append(options, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*ofRuns)})
	}
	return &stream{
		client:  c,
		kind:    &rqv1.LeaseList{},
		options: options,
		limit:   1,
		listed:  func(client.ObjectList) {},
		changed: func(event watch.EventType, object client.Object) {
			lease := object.(*rqv1.Lease)
			if event == watch.Deleted || event == watch.Modified && !lease.Status.Closed {
				return
			}
			post(func() error {
				w.report.lease(lease)
				return nil
			})
		},
		lost: func(error) {},
	}, nil
}
