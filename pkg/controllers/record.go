package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

const (
	// labelRecord marks the ConfigMaps that hold records, one for each Budget.
	labelRecord = rqv1.GroupName + "/record"
	// recordKey is the key of a record in its ConfigMap.
	recordKey = "record.json"
)

// readRecords hands the stored records to the book, and returns the versions that they have, by ConfigMap, and up to
// when Leases are in them, by Budget.
func (l *ledger) readRecords(ctx context.Context) (versions map[string]string, through map[string]int64, err error) {
	stored, err := l.listRecords(ctx)
	if err != nil {
		return nil, nil, err
	}
	through = map[string]int64{}
	l.settled.versions = map[string]string{}
	for i := range stored.Items {
		var record budget.Record
		if err := json.Unmarshal([]byte(stored.Items[i].Data[recordKey]), &record); err != nil {
			return nil, nil, fmt.Errorf("ConfigMap %s/%s, which holds the settled Leases of a Budget: %w", Namespace,
				stored.Items[i].Name, err)
		}
		l.book.Budgets.SetRecord(record)
		through[record.Budget] = record.Through
		for _, lease := range record.Leases { // a predecessor may not have come to delete them
			namespace, name, _ := strings.Cut(lease, "/")
			l.settled.add(settledLease{types.NamespacedName{Namespace: namespace, Name: name}, record.Budget})
		}
		l.settled.versions[record.Budget] = stored.Items[i].ResourceVersion
	}
	return versionsOf(stored), through, nil
}

func (l *ledger) listRecords(ctx context.Context) (*corev1.ConfigMapList, error) {
	stored, err := l.kube.CoreV1().ConfigMaps(Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelRecord})
	if err != nil {
		return nil, fmt.Errorf("reading the records of settled Leases: %w", err)
	}
	return stored, nil
}

func versionsOf(list *corev1.ConfigMapList) map[string]string {
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return out
}

// unchanged fails when a record has been written since it was read: by a predecessor whose request was late, and who
// may have deleted Leases that were not read any more. What is written after this by others is not believed: this
// process knows better.
func (l *ledger) unchanged(ctx context.Context, versions map[string]string) error {
	stored, err := l.listRecords(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(versions, versionsOf(stored)) {
		return errors.New("a record of settled Leases was written while the Leases were read: all is read again")
	}
	return nil
}

// writeRecord stores the record of a Budget in its ConfigMap, in place of what this process knows to be there. A
// request that is late, of a process that leads no more, finds another version and changes nothing. When it is this
// process that finds another version, it writes again, if it leads still.
func (l *ledger) writeRecord(ctx context.Context, of string) error {
	err := l.putRecord(ctx, of)
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		return err
	}
	stored, err := l.kube.CoreV1().ConfigMaps(Namespace).Get(ctx, recordName(of), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		delete(l.settled.versions, of)
	case err != nil:
		return err
	default:
		l.settled.versions[of] = stored.ResourceVersion
	}
	return l.putRecord(ctx, of)
}

func recordName(budget string) string { return "settled-" + budget }

func (l *ledger) putRecord(ctx context.Context, of string) error {
	text, err := json.Marshal(l.book.Budgets.Record(of))
	if err != nil {
		return err
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: recordName(of),
			Labels: map[string]string{labelRecord: "true"}},
		Data: map[string]string{recordKey: string(text)},
	}
	configs, stored := l.kube.CoreV1().ConfigMaps(Namespace), (*corev1.ConfigMap)(nil)
	record.ResourceVersion = l.settled.versions[of]
	if record.ResourceVersion == "" {
		stored, err = configs.Create(ctx, record, metav1.CreateOptions{})
	} else {
		stored, err = configs.Update(ctx, record, metav1.UpdateOptions{})
	}
	if err == nil {
		l.settled.versions[of] = stored.ResourceVersion
	}
	return err
}
