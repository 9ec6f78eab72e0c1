package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

const (
	// labelRecord marks the ConfigMaps that hold records, one for each Budget.
	labelRecord = rqv1.GroupName + "/record"
	// recordKey is the key of a record in its ConfigMap.
	recordKey = "record.json"
)

// records are the ConfigMaps in which the API server stores what Leases have spent that are settled.
type records struct {
	book *book.Book
	kube kubernetes.Interface
	// versions are the resource versions of the stored records, by Budget, as they were read or written last.
	versions map[string]string
}

func newRecords(b *book.Book, kube kubernetes.Interface) *records {
	return &records{book: b, kube: kube, versions: map[string]string{}}
}

// read hands the stored records to the book, and returns the versions that they have, by ConfigMap, and themselves.
func (r *records) read(ctx context.Context) (versions map[string]string, all []budget.Record, err error) {
	stored, err := r.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.versions = map[string]string{}
	all = make([]budget.Record, len(stored.Items))
	for i := range stored.Items {
		record := &all[i]
		if err := json.Unmarshal([]byte(stored.Items[i].Data[recordKey]), record); err != nil {
			return nil, nil, fmt.Errorf("ConfigMap %s/%s, which holds the settled Leases of a Budget: %w", Namespace,
				stored.Items[i].Name, err)
		}
		r.book.Budgets.SetRecord(*record)
		r.versions[record.Budget] = stored.Items[i].ResourceVersion
	}
	return versionsOf(stored), all, nil
}

func (r *records) list(ctx context.Context) (*corev1.ConfigMapList, error) {
	stored, err := r.kube.CoreV1().ConfigMaps(Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelRecord})
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
func (r *records) unchanged(ctx context.Context, versions map[string]string) error {
	stored, err := r.list(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(versions, versionsOf(stored)) {
		return errors.New("a record of settled Leases was written while the Leases were read: all is read again")
	}
	return nil
}

// write stores the record of a Budget in its ConfigMap, in place of what this process knows to be there. A
// request that is late, of a process that leads no more, finds another version and changes nothing. When it is this
// process that finds another version, it writes again, if it leads still.
func (r *records) write(ctx context.Context, of string) error {
	err := r.put(ctx, of)
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		return err
	}
	stored, err := r.kube.CoreV1().ConfigMaps(Namespace).Get(ctx, recordName(of), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		delete(r.versions, of)
	case err != nil:
		return err
	default:
		r.versions[of] = stored.ResourceVersion
	}
	return r.put(ctx, of)
}

func recordName(budget string) string { return "settled-" + budget }

func (r *records) put(ctx context.Context, of string) error {
	text, err := json.Marshal(r.book.Budgets.Record(of))
	if err != nil {
		return err
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: recordName(of),
			Labels: map[string]string{labelRecord: "true"}},
		Data: map[string]string{recordKey: string(text)},
	}
	configs, stored := r.kube.CoreV1().ConfigMaps(Namespace), (*corev1.ConfigMap)(nil)
	record.ResourceVersion = r.versions[of]
	if record.ResourceVersion == "" {
		stored, err = configs.Create(ctx, record, metav1.CreateOptions{})
	} else {
		stored, err = configs.Update(ctx, record, metav1.UpdateOptions{})
	}
	if err == nil {
		r.versions[of] = stored.ResourceVersion
	}
	return err
}
