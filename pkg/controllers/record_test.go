package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/fence"
)

// deletes stands for an API server of which only Leases are deleted.
type deletes struct {
	client.WithWatch
	mu         sync.Mutex // Leases are deleted several at a time
	gone, kept []string
}

func (d *deletes) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = append(d.gone, o.GetName())
	return nil
}

// store keeps ConfigMaps as the API server does: whoever writes over a version that is not the last one is refused.
type store struct {
	*fake.Clientset
	versions map[string]int
	refused  string // the name that is never taken
}

func newStore() *store {
	s := &store{Clientset: fake.NewClientset(), versions: map[string]int{}}
	s.PrependReactor("*", "configmaps", func(action core.Action) (bool, runtime.Object, error) {
		write, ok := action.(core.CreateAction) // updates are alike
		if !ok {
			return false, nil, nil
		}
		m := write.GetObject().(*corev1.ConfigMap)
		resource := corev1.Resource("configmaps")
		switch {
		case m.Name == s.refused:
			return true, nil, apierrors.NewForbidden(resource, m.Name, errors.New("quota exceeded"))
		case action.GetVerb() == "create" && s.versions[m.Name] > 0:
			return true, nil, apierrors.NewAlreadyExists(resource, m.Name)
		case action.GetVerb() == "update" && m.ResourceVersion != fmt.Sprint(s.versions[m.Name]):
			return true, nil, apierrors.NewConflict(resource, m.Name, errors.New("another version"))
		}
		s.versions[m.Name]++
		m.ResourceVersion = fmt.Sprint(s.versions[m.Name])
		return false, nil, nil
	})
	return s
}

func (s *store) record(budget string) string {
	m, err := s.CoreV1().ConfigMaps(Namespace).Get(context.Background(), recordName(budget), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return m.Data[recordKey]
}

// leader returns the ledger of one process, and what they delete.
func leader(t *testing.T, s *store) (*ledger, *deletes) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &deletes{}
	return newLedger(book.New(args), d, s, believing(clocktesting.NewFakeClock(noon)), args), d
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// spend has a Lease of one GPU for an hour end at noon, and settles it.
func spend(c *ledger, budget, name string) {
	c.book.Begin(noon)
	c.book.SetLease(closed(budget, name))
	c.book.Budgets.Settle(budget, noon)
	c.settled.changed([]string{budget})
	c.settled.add(settledLease{types.NamespacedName{Namespace: "ns", Name: name}, budget})
}

// TestRecordThatCannotBeStored holds up no other Budget's, and its own Leases stay until it can.
func TestRecordThatCannotBeStored(t *testing.T) {
	s := newStore()
	s.refused = recordName("bad")
	c, d := leader(t, s)
	for _, budget := range []string{"bad", "good", "last"} {
		spend(c, budget, "of-"+budget)
	}
	c.storeSettled(t.Context())
	slices.Sort(d.gone)
	if diff := cmp.Diff([]string{"of-good", "of-last"}, d.gone); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	s.refused = ""
	c.storeSettled(t.Context())
	if !slices.Contains(d.gone, "of-bad") {
		t.Errorf("the Lease of a record that could be stored in the end is kept")
	}
}

// TestLateRecordOfAPredecessor has a process that leads no more write a record after its successor has: nothing
// changes. The successor writes over what a predecessor wrote before.
func TestLateRecordOfAPredecessor(t *testing.T) {
	s := newStore()
	old, _ := leader(t, s)
	spend(old, "b", "first")
	old.storeSettled(t.Context())

	next, _ := leader(t, s)
	if _, _, err := next.records.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	spend(next, "b", "second")
	next.storeSettled(t.Context())
	want := s.record("b")
	spend(old, "b", "third")
	sent := 0
	s.PrependReactor("update", "configmaps", func(core.Action) (bool, runtime.Object, error) {
		if sent++; sent > 1 { // the first was on its way when it lost the lead
			return true, nil, fence.ErrNotLeading
		}
		return false, nil, nil
	})
	old.storeSettled(t.Context())
	if s.ReactionChain = s.ReactionChain[1:]; sent != 2 {
		t.Errorf("the predecessor has tried to write %d times, want twice", sent)
	}
	if diff := cmp.Diff(want, s.record("b")); diff != "" {
		t.Errorf("the record after a late write of a predecessor (-want +got):\n%s", diff)
	}

	third := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: recordName("b"),
		ResourceVersion: fmt.Sprint(s.versions[recordName("b")])}}
	if _, err := s.CoreV1().ConfigMaps(Namespace).Update(t.Context(), third, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	spend(next, "b", "fourth")
	next.storeSettled(t.Context())
	if !strings.Contains(s.record("b"), fmt.Sprint(int64(3*budget.GPUHour))) {
		t.Errorf("the leader does not write over another's record: %s", s.record("b"))
	}
}

// TestRecordWrittenWhileReading: all is to be read again.
func TestRecordWrittenWhileReading(t *testing.T) {
	s := newStore()
	c, _ := leader(t, s)
	spend(c, "b", "first")
	c.storeSettled(t.Context())
	versions, _, err := c.records.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.records.unchanged(t.Context(), versions); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
	spend(c, "b", "second")
	c.storeSettled(t.Context())
	if c.records.unchanged(t.Context(), versions) == nil {
		t.Errorf("a record that was written meanwhile is not noticed")
	}
}
