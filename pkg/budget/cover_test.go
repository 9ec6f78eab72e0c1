package budget

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { t := metav1.NewTime(noon.Add(d)); return &t }

func accountsOf(budgets ...*rqv1.Budget) *Accounts {
	a := NewAccounts()
	for _, b := range budgets {
		a.SetBudget(b)
	}
	return a
}

func newBudget(name string, owner rqv1.Owner, envelopes ...rqv1.Envelope) *rqv1.Budget {
	for i := range envelopes {
		if envelopes[i].Flavor == "" {
			envelopes[i].Flavor = "H100"
		}
	}
	return &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: rqv1.BudgetSpec{Owner: owner, Envelopes: envelopes}}
}

func TestOrderOfPayers(t *testing.T) {
	a := accountsOf(
		newBudget("b", "org:a", rqv1.Envelope{Name: "open", Concurrency: 8}),
		newBudget("a", "org:a", rqv1.Envelope{Name: "open", Concurrency: 8}, rqv1.Envelope{Name: "late", Concurrency: 8, End: at(48 * time.Hour)},
			rqv1.Envelope{Name: "early", Concurrency: 8, End: at(24 * time.Hour)}),
		newBudget("c", "org:b", rqv1.Envelope{Name: "stranger", Concurrency: 8}),
		newBudget("d", "org:a", rqv1.Envelope{Name: "other", Concurrency: 8, Flavor: "A100"}),
	)
	c := a.Cover("org:a", "H100", 4, noon)
	class := c.Class(nil)
	got := c.Assign([]int{class, class, class, class, class, class, class, class})
	want := []Key{{"a", "early"}, {"a", "early"}, {"a", "late"}, {"a", "late"}, {"a", "open"}, {"a", "open"}, {"b", "open"}, {"b", "open"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payers (-want +got):\n%s", diff)
	}
	if c.Covers([]int{9}) {
		t.Errorf("nine pods of 4 GPUs are covered by 32 GPUs")
	}
}

func TestOffers(t *testing.T) {
	hours := int64(10)
	capped := newBudget("capped", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8})
	capped.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "all", Flavor: "H100", Envelopes: []string{"e"}}}
	a := accountsOf(
		newBudget("future", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, Start: at(time.Hour)}),
		newBudget("past", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, End: at(0)}),
		newBudget("metered", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, MaxGPUHours: &hours}),
		newBudget("used", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8}),
		newBudget("lowered", "org:a", rqv1.Envelope{Name: "e", Concurrency: 2}),
		capped,
	)
	a.Open("ns/x", Charge{Payer: Key{"used", "e"}, Owner: "org:a", GPUs: 5})
	a.Open("ns/y", Charge{Payer: Key{"lowered", "e"}, Owner: "org:a", GPUs: 4})
	got := map[string]string{}
	for _, o := range a.Cover("org:a", "H100", 2, noon).Offers {
		got[o.Key.Budget] = fmt.Sprintf("%d pods, %d free, %q", o.Pods, o.Headroom(), o.Refusal)
	}
	want := map[string]string{
		"future":  `0 pods, 8 free, "its window opens at 2026-03-01T13:00:00Z"`,
		"past":    `0 pods, 8 free, "its window closed at 2026-03-01T12:00:00Z"`,
		"metered": `0 pods, 8 free, "its maxGPUHours is not metered by this version"`,
		"capped":  `0 pods, 8 free, "its aggregate cap all is not enforced by this version"`,
		"used":    `1 pods, 3 free, ""`,
		"lowered": `0 pods, 0 free, ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offers (-want +got):\n%s", diff)
	}
}

func TestSelectors(t *testing.T) {
	a := accountsOf(newBudget("b", "org:a",
		rqv1.Envelope{Name: "west", Concurrency: 4, Selector: map[string]string{"region": "west"}},
		rqv1.Envelope{Name: "named", Concurrency: 4, Selector: map[string]string{"fabric.domain": "*"}},
	))
	c := a.Cover("org:a", "H100", 4, noon)
	west := c.Class(map[string]string{"region": "west", "fabric.domain": "A"})
	east := c.Class(map[string]string{"region": "east", "fabric.domain": "B"})
	if nobody := c.Class(map[string]string{"region": "east"}); nobody != -1 {
		t.Errorf("class of nodes that no selector matches: %d, want -1", nobody)
	}
	// The envelope of any domain comes first by name, but the pod in the east needs it.
	got := c.Assign([]int{west, east})
	if diff := cmp.Diff([]Key{{"b", "west"}, {"b", "named"}}, got); diff != "" {
		t.Errorf("payers (-want +got):\n%s", diff)
	}
	if got := c.Assign([]int{east, east}); got != nil {
		t.Errorf("two pods in the east are paid by %v", got)
	}
}

func TestChargesOutliveTheirBudget(t *testing.T) {
	b := newBudget("b", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8})
	a := accountsOf(b)
	a.Open("ns/x", Charge{Payer: Key{"b", "e"}, Owner: "org:a", GPUs: 6})
	a.Open("ns/x", Charge{Payer: Key{"b", "e"}, Owner: "org:a", GPUs: 6})
	a.DeleteBudget("b")
	if got := a.Cover("org:a", "H100", 1, noon).Payable(); got != 0 {
		t.Errorf("without a Budget %d GPUs are payable", got)
	}
	a.SetBudget(b)
	if got := a.Cover("org:a", "H100", 1, noon).Payable(); got != 2 {
		t.Errorf("with the Budget back %d GPUs are payable, want 2", got)
	}
	if _, ok := a.Close("ns/x"); !ok {
		t.Errorf("the open Lease is not known")
	}
	if _, ok := a.Close("ns/x"); ok {
		t.Errorf("a Lease closed twice")
	}
	if diff := cmp.Diff(map[Key]int{}, a.Usage()); diff != "" {
		t.Errorf("usage after closing (-want +got):\n%s", diff)
	}
}

func TestNextWindow(t *testing.T) {
	a := accountsOf(newBudget("b", "org:a", rqv1.Envelope{Name: "x", Concurrency: 1, Start: at(3 * time.Hour), End: at(5 * time.Hour)},
		rqv1.Envelope{Name: "y", Concurrency: 1, Start: at(-time.Hour), End: at(4 * time.Hour)}))
	next, ok := a.NextWindow(noon)
	if !ok || !next.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("next window edge %v, %v", next, ok)
	}
	if next, ok = a.NextWindow(noon.Add(5 * time.Hour)); ok {
		t.Errorf("an edge after the last: %v", next)
	}
}

// payable decides by trying every payer for every pod: slow and obviously right.
func payable(selectors [][]int, pods []int, capacity []int) bool {
	if len(pods) == 0 {
		return true
	}
	for _, payer := range selectors[pods[0]] {
		if capacity[payer] > 0 {
			capacity[payer]--
			ok := payable(selectors, pods[1:], capacity)
			capacity[payer]++
			if ok {
				return true
			}
		}
	}
	return false
}

// TestCoverAgainstBruteForce compares what can be paid for with trying everything, and asserts that an assignment keeps to
// selectors and headroom, is there whenever there is one, and is the first in order.
func TestCoverAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "envelopes")
		envelopes := make([]rqv1.Envelope, n)
		capacity := make([]int, n)
		for i := range envelopes {
			capacity[i] = rapid.IntRange(1, 3).Draw(t, "pods")
			envelopes[i] = rqv1.Envelope{Name: fmt.Sprintf("e%d", i), Concurrency: int32(2*capacity[i] + i%2), Selector: map[string]string{}}
			if zone := rapid.SampledFrom([]string{"", "w", "e", "*"}).Draw(t, "zone"); zone != "" {
				envelopes[i].Selector["zone"] = zone
			}
		}
		c := accountsOf(newBudget("b", "org:a", envelopes...)).Cover("org:a", "H100", 2, noon)
		var classes, pods []int
		for _, zone := range []string{"w", "e"} {
			if class := c.Class(map[string]string{"zone": zone}); class >= 0 {
				classes = append(classes, class)
			}
		}
		if len(classes) > 0 {
			pods = rapid.SliceOfN(rapid.SampledFrom(classes), 0, 7).Draw(t, "classes of pods")
		}
		demand := make([]int, len(c.classes))
		for _, class := range pods {
			demand[class]++
		}
		want := payable(c.classes, pods, capacity)
		if got := c.Covers(demand); got != want {
			t.Fatalf("covers %v: %v, want %v", demand, got, want)
		}
		payers := c.Assign(pods)
		if (payers != nil) != want {
			t.Fatalf("assign %v: %v, coverable: %v", pods, payers, want)
		}
		if !want {
			return
		}
		for i, payer := range payers {
			chosen := int(payer.Envelope[1] - '0')
			for _, earlier := range c.classes[pods[i]] {
				if earlier == chosen {
					break
				}
				if capacity[earlier] > 0 {
					capacity[earlier]--
					if payable(c.classes, pods[i+1:], capacity) {
						t.Fatalf("pod %d is paid by %s although e%d comes first and would do", i, payer, earlier)
					}
					capacity[earlier]++
				}
			}
			if capacity[chosen]--; capacity[chosen] < 0 {
				t.Fatalf("%s pays for more than its headroom: %v", payer, payers)
			}
		}
	})
}

func TestCoverDoesNotDependOnOrder(t *testing.T) {
	budgets := []*rqv1.Budget{
		newBudget("x", "org:a", rqv1.Envelope{Name: "e", Concurrency: 3}), newBudget("y", "org:a", rqv1.Envelope{Name: "e", Concurrency: 5}),
		newBudget("z", "org:a", rqv1.Envelope{Name: "e", Concurrency: 2, End: at(time.Hour)}),
	}
	var want []Key
	for seed := range int64(20) {
		rand.New(rand.NewSource(seed)).Shuffle(len(budgets), func(i, j int) { budgets[i], budgets[j] = budgets[j], budgets[i] })
		c := accountsOf(budgets...).Cover("org:a", "H100", 1, noon)
		class := c.Class(nil)
		got := c.Assign([]int{class, class, class, class, class, class, class})
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("payers depend on the order of Budgets:\n%s", diff)
		}
	}
}

// BenchmarkCover assigns payers to 1,000 pods, with 500 Budgets of 10 envelopes in the book.
func BenchmarkCover(b *testing.B) {
	a := NewAccounts()
	for i := range 500 {
		var envelopes []rqv1.Envelope
		for j := range 10 {
			envelopes = append(envelopes, rqv1.Envelope{Name: fmt.Sprintf("e%d", j), Concurrency: 1000})
		}
		a.SetBudget(newBudget(fmt.Sprintf("b%d", i), rqv1.Owner(fmt.Sprintf("org:o%d", i)), envelopes...))
	}
	b.ReportAllocs()
	for b.Loop() {
		c := a.Cover("org:o250", "H100", 8, noon)
		class := c.Class(nil)
		classes := make([]int, 1000)
		for i := range classes {
			classes[i] = class
		}
		if c.Assign(classes) == nil {
			b.Fatal("not covered")
		}
	}
}
