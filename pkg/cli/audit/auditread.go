package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// auditPage is how many objects are asked for at a time.
const auditPage = 500

// settledRecords are the ConfigMaps that hold what settled GPU leases have spent.
var settledRecords = func() labels.Selector {
	marked, err := labels.NewRequirement(rqv1.GroupName+"/record", selection.Exists, nil)
	session.Must(err)
	return labels.NewSelector().Add(*marked)
}()

// readWorld reads all that an audit looks at. GPU leases come before the records: those that are in a record may be
// deleted.
func readWorld(ctx context.Context, c client.Client, now time.Time) (*audit.World, error) {
	w := &audit.World{At: now, Whole: true}
	var maps corev1.ConfigMapList
	for _, read := range []func() error{
		func() error {
			return listed(ctx, c, "Budgets", &rqv1.BudgetList{}, func(l *rqv1.BudgetList) { keep(&w.Budgets, l.Items) })
		},
		func() error {
			return listed(ctx, c, "Reservations", &rqv1.ReservationList{}, func(l *rqv1.ReservationList) {
				keep(&w.Reservations,
					l.Items)
			})
		},
		func() error {
			return listed(ctx, c, "Runs", &rqv1.RunList{}, func(l *rqv1.RunList) { keep(&w.Runs, l.Items) })
		},
		func() error {
			return listed(ctx, c, "nodes", &corev1.NodeList{}, func(l *corev1.NodeList) { keep(&w.Nodes, l.Items) })
		},
		func() error {
			return listed(ctx, c, "pods", &corev1.PodList{}, func(l *corev1.PodList) { keep(&w.Pods, l.Items) })
		},
		func() error {
			return listed(ctx, c, "GPU leases", &rqv1.LeaseList{}, func(l *rqv1.LeaseList) { keep(&w.Leases, l.Items) })
		},
		func() error {
			return listed(ctx, c, "ConfigMaps of settled GPU leases", &corev1.ConfigMapList{},
				func(l *corev1.ConfigMapList) { maps.Items = append(maps.Items, l.Items...) },
				client.InNamespace(world.SchedulerNamespace), client.MatchingLabelsSelector{Selector: settledRecords})
		},
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	for i := range maps.Items {
		var record budget.Record
		if err := json.Unmarshal([]byte(maps.Items[i].Data["record.json"]), &record); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s, which holds the settled GPU leases of a Budget: %w",
				world.SchedulerNamespace, maps.Items[i].Name, err)
		}
		w.Records = append(w.Records, record)
	}
	return w, nil
}

// listed hands over one page of a list after the other. What may not be listed is named.
func listed[L client.ObjectList](ctx context.Context, c client.Client, what string, list L, take func(L),
	options ...client.ListOption) error {
	next := &client.ListOptions{Limit: auditPage}
	for _, o := range options {
		o.ApplyToList(next)
	}
	for {
		page := list.DeepCopyObject().(L)
		err := c.List(ctx, page, next)
		if apierrors.IsForbidden(err) {
			return session.Fail(session.ExitUnread,
				"an audit has to list %s: %s; ask an administrator for the ClusterRole and the Role jobtree-auditor", what,
				session.Refusal(err))
		}
		if err != nil {
			return err
		}
		take(page)
		next.Continue = page.GetContinue()
		if next.Continue == "" {
			return nil
		}
	}
}

// keep adds the items of a page.
func keep[T any](to *[]*T, items []T) {
	for i := range items {
		*to = append(*to, &items[i])
	}
}
