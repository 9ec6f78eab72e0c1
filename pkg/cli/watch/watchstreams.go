package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// runStream posts the Runs of a namespace, or of all, that exist and every change of them. A Run that a later list
// lacks was deleted meanwhile. Whether the API server is there is told by one stream of several.
func (w *runWatch) runStream(c client.WithWatch, namespace string, tells bool, post func(func() error)) *stream {
	return &stream{
		client:  c,
		kind:    &rqv1.RunList{},
		options: []client.ListOption{client.InNamespace(namespace)},
		listed: func(list client.ObjectList) {
			runs := list.(*rqv1.RunList).Items
			post(func() error {
				w.relisted(namespace, runs)
				return nil
			})
		},
		changed: func(event watch.EventType, object client.Object) {
			run := object.(*rqv1.Run)
			post(func() error {
				if event == watch.Deleted {
					w.gone(run, run.ResourceVersion)
				} else {
					w.seen(run)
				}
				return nil
			})
		},
		lost: func(err error) {
			post(func() error {
				if !tells {
					return nil
				}
				if err == nil {
					fmt.Fprintln(w.ErrOut, "The API server is back.")
				} else {
					fmt.Fprintf(w.ErrOut, "Lost the API server, trying again: %s\n", session.Refusal(err))
				}
				return nil
			})
		},
	}
}

func (w *runWatch) relisted(namespace string, runs []rqv1.Run) {
	present := map[types.NamespacedName]bool{}
	for i := range runs {
		present[client.ObjectKeyFromObject(&runs[i])] = true
		w.seen(&runs[i])
	}
	var missing []*rqv1.Run
	for key, run := range w.runs {
		if !present[key] && (namespace == "" || namespace == key.Namespace) {
			missing = append(missing, run)
		}
	}
	slices.SortFunc(missing, func(a, b *rqv1.Run) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, run := range missing {
		w.gone(run, "")
	}
}

// leaseStream takes note of the GPU leases of a namespace, or of all, that are open, and posts what opens or closes
// from then on.
func (w *runWatch) leaseStream(c client.WithWatch, namespace string, post func(func() error)) (*stream, error) {
	options := []client.ListOption{client.InNamespace(namespace)}
	if len(w.names) > 0 {
		ofRuns, err := labels.NewRequirement(rqv1.LabelRun, selection.In, w.names)
		if err != nil {
			return nil, err
		}
		options = append(options, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*ofRuns)})
	}
	begun := false
	return &stream{
		client:  c,
		kind:    &rqv1.LeaseList{},
		options: options,
		only:    []client.ListOption{session.LeasesOpen},
		listed: func(list client.ObjectList) {
			open := list.(*rqv1.LeaseList).Items
			if !begun { // nobody else is at work yet
				begun = true
				w.report.begin(open)
				return
			}
			post(func() error {
				w.report.resume(namespace, open, list.GetResourceVersion())
				return nil
			})
		},
		changed: func(event watch.EventType, object client.Object) {
			lease := object.(*rqv1.Lease)
			post(func() error {
				if event == watch.Deleted {
					w.report.drop(lease)
				} else {
					w.report.lease(lease)
				}
				return nil
			})
		},
		lost: func(error) {},
	}, nil
}
