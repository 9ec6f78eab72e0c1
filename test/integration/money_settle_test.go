package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/test/story"
)

// payersOfSettlement are the owners whose envelopes pay for the Runs of TestSettlement.
var payersOfSettlement = []string{"ai:team", "ai:sister", "lender"}

// TestSettlement runs many short Runs while closed Leases go after two seconds, and kills the scheduler at random
// moments: in the end every Lease object is gone, and the Budgets have spent what all of them together did, to the
// GPU-second. So they have after a restart, and when a Budget is deleted and created again.
func TestSettlement(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "5s", "ledgerRetention": "2s"}), 2, 3, 0)
	s.startScheduler()
	s.fund("ai", s.envelope("all", 1, func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }))
	s.fund("ai:team", s.envelope("one", 8), s.envelope("two", 4))
	s.fund("ai:sister", s.envelope("all", 8))
	s.fund("lender", s.envelope("all", 24, s.lends(0, "ai:team")))
	for round := range 6 {
		runs := s.submitBrief(round, random)
		s.killAfter(time.Duration(random.IntN(2500)) * time.Millisecond)
		for _, run := range runs {
			s.await(run, rqv1.RunCompleted, "completed")
		}
	}
	s.awaitAllSettled()
	spent := s.awaitRecorded()
	if spent == 0 {
		t.Error("nothing was spent: the test has shown nothing")
	}
	s.killAfter(0)
	s.awaitRecorded()
	s.delete(s.budgetFor("ai:team"))
	s.fund("ai:team", s.envelope("one", 8), s.envelope("two", 4))
	if again := s.awaitRecorded(); again != spent {
		t.Errorf("%s GPU-hours were spent before a Budget was deleted, and %s after it was created again", spent, again)
	}
	s.settled()
	s.audit(0)
}

// submitBrief submits Runs of one second that everybody has to pay for, some of them with spares.
func (s *site) submitBrief(round int, random *rand.Rand) []string {
	s.t.Helper()
	var names []string
	for i := range 4 {
		name := fmt.Sprintf("brief-%d-%d", round, i)
		s.submit(name, 4*(1+random.Int32N(3)), s.by("ai:team"), inPods(2), s.from(0, "lender"),
			annotated("pod-complete.stage.kwok.x-k8s.io/delay", "1s"), func(r *rqv1.Run) {
				if random.IntN(3) == 0 {
					r.Spec.Spares = ptr.To[int32](2)
				}
			})
		names = append(names, name)
	}
	return names
}

// awaitAllSettled waits until the site has no Lease object any more.
func (s *site) awaitAllSettled() {
	s.t.Helper()
	eventually(s.t, "every Lease is to be settled", func() error {
		var leases rqv1.LeaseList
		if err := s.api.List(s.t.Context(), &leases, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(leases.Items) > 0 {
			return fmt.Errorf("%d are left", len(leases.Items))
		}
		return nil
	})
}

// awaitRecorded waits until the Budgets have spent, by their status and by their records, what all Leases that there
// ever were add up to, and returns the sum.
func (s *site) awaitRecorded() budget.Spend {
	s.t.Helper()
	sum := budget.Spend(0)
	for _, path := range payersOfSettlement {
		s.awaitSpent(path)
		recorded, err := s.recorded(path)
		if err != nil {
			s.t.Fatal(err)
		}
		status, err := s.statusOf(path)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range status.Envelopes {
			if got := recorded[e.Name]; got.String() != e.GPUHours.Spent {
				s.t.Errorf("envelope %s of %s has spent %s by its status and %s by its record", e.Name, path, e.GPUHours.Spent, got)
			}
			sum += recorded[e.Name]
		}
	}
	return sum
}

// recorded is what the stored record of a Budget says that each envelope has spent.
func (s *site) recorded(path string) (map[string]budget.Spend, error) {
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: "jobtree-system", Name: "settled-" + s.budgetFor(path).Name}
	if err := s.api.Get(s.t.Context(), key, stored); err != nil {
		return nil, err
	}
	var record budget.Record
	if err := json.Unmarshal([]byte(stored.Data["record.json"]), &record); err != nil {
		return nil, err
	}
	out := map[string]budget.Spend{}
	for envelope, buckets := range record.Envelopes {
		for _, bucket := range buckets {
			for _, ties := range bucket.Spent {
				for _, spent := range ties {
					out[envelope] += spent
				}
			}
		}
	}
	return out, nil
}

// TestMoneyOutlivesItsNamespace deletes a namespace, and with it Leases that are not settled, of which some are open:
// what they spent stays spent, and is on record before the namespace is gone, which somebody's finalizer keeps.
func TestMoneyOutlivesItsNamespace(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 0)
	s.fund("team", s.envelope("past", 8), s.envelope("present", 8))
	s.submit("past", 8, s.by("team"), annotated("pod-complete.stage.kwok.x-k8s.io/delay", "2s"))
	s.await("past", rqv1.RunCompleted, "completed")
	before, err := s.everSpent(s.budgetFor("team").Name, "past")
	if err != nil || before == 0 {
		t.Fatalf("spent %s, %v", before, err)
	}
	edit(s, s.budgetFor("team"), func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 1 })
	s.submit("present", 8, s.by("team"), inPods(8))
	s.await("present", rqv1.RunRunning, "bound 8 GPUs")
	started := s.leasesOf("present")[0].Spec.Start.Time

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	hangs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hangs",
		Finalizers: []string{"example.com/mine"}}}
	s.create(hangs)
	deleted := time.Now()
	s.delete(namespace)
	var recorded map[string]budget.Spend
	eventually(t, "what was spent is to be recorded while the namespace hangs", func() error {
		status, err := s.statusOf("team")
		if err == nil {
			recorded, err = s.recorded("team")
		}
		if err != nil {
			return err
		}
		past, present := status.Envelopes[0].GPUHours.Spent, status.Envelopes[1].GPUHours.Spent
		if past != before.String() || recorded["past"] != before || recorded["present"] == 0 ||
			recorded["present"].String() != present {
			return fmt.Errorf("spent %s and %s by status, %v by record, and %s before", past, present, recorded, before)
		}
		return nil
	})
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		t.Errorf("the namespace does not hang: %v", err)
	}
	edit(s, hangs, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	eventually(t, "the namespace is to be gone", func() error {
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
	s.ledger.forget(s.namespace)
	s.awaitEnvelopes("team", rqv1.EnvelopeStatus{Name: "past"}, rqv1.EnvelopeStatus{Name: "present"})
	least := 8 * budget.GPUSecond * budget.Spend(deleted.Unix()-started.Unix())
	most := 8 * budget.GPUSecond * budget.Spend(time.Now().Unix()-started.Unix())
	if got := recorded["present"]; got < least || got > most {
		t.Errorf("the Run that was running has spent %s, and not between %s and %s", got, least, most)
	}
}

// everSpent adds up what the site's Leases spent of an envelope, from what was ever seen of them. It is an error while
// one of them is open.
func (s *site) everSpent(payer, envelope string) (budget.Spend, error) {
	s.ledger.mutex.Lock()
	defer s.ledger.mutex.Unlock()
	return story.SpentOn(slices.Collect(maps.Values(s.ledger.leases[s.namespace])), payer, envelope)
}

// awaitSpent waits until nothing is charged to an owner's Budget any more, and its GPU-hours are what all Leases that
// the site ever had add up to, whether they are still there or not (I8, R9).
func (s *site) awaitSpent(path string) {
	s.t.Helper()
	eventually(s.t, "the GPU-hours of "+path, func() error {
		status, err := s.statusOf(path)
		if err != nil {
			return err
		}
		for i := range status.Envelopes {
			e := &status.Envelopes[i]
			spent, err := s.everSpent(s.budgetFor(path).Name, e.Name)
			if err != nil {
				return err
			}
			if got := e.GPUHours.Spent; got != spent.String() {
				return fmt.Errorf("envelope %s has spent %s by its status and %s by its Leases", e.Name, got, spent)
			}
		}
		return nil
	})
}
