package book_test

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// poolOf is the label by which some envelopes pay for some nodes of a domain alone.
func poolOf(node string) string {
	if (node[len(node)-1]-'0')%2 == 0 {
		return "even"
	}
	return "odd"
}

// selectAny returns the nodes that an envelope pays for.
func selectAny(t *rapid.T) map[string]string {
	return rapid.SampledFrom([]map[string]string{nil, nil, {"fabric.domain": "*"}, {"fabric.domain": "d0"},
		{"pool": "even"}, {"pool": "odd"}}).Draw(t, "selector")
}

// divideAny gives a Budget a second envelope, and a cap over both, if chance has it so.
func (w *world) divideAny(t *rapid.T, name string) {
	if rapid.IntRange(0, 2).Draw(t, "envelopes") < 2 {
		return
	}
	b := w.Budgets[name].DeepCopy()
	first := &b.Spec.Envelopes[0]
	first.Selector = selectAny(t)
	second := rqv1.Envelope{Name: "f", Flavor: flavor, Selector: selectAny(t),
		Concurrency: rapid.Int32Range(2, 32).Draw(t, "concurrency")}
	if w.storm != nil && rapid.IntRange(0, 3).Draw(t, "closes") == 0 {
		end := metav1.NewTime(w.Now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "end")) * time.Second))
		second.End = &end
	}
	b.Spec.Envelopes = append(b.Spec.Envelopes, second)
	if rapid.Bool().Draw(t, "capped") {
		most := rapid.Int32Range(4, first.Concurrency+second.Concurrency).Draw(t, "cap")
		b.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "both", Flavor: flavor, Envelopes: []string{"e", "f"},
			MaxConcurrency: &most}}
	}
	b.Generation = int64(w.NextUID)
	w.NextUID++
	w.SetBudget(b)
}

// left returns how many GPUs a Budget can still pay for, on whatever nodes.
func (w *world) left(name string) int {
	b := w.Budgets[name]
	if b == nil {
		return 0
	}
	usage, sum := w.Book.Budgets.Usage(), 0
	each := map[string]int{}
	for _, e := range b.Spec.Envelopes {
		used := usage[budget.Key{Budget: name, Envelope: e.Name}]
		each[e.Name] = used
		sum += max(0, int(e.Concurrency)-used)
	}
	for _, c := range b.Spec.AggregateCaps {
		used := 0
		for _, e := range c.Envelopes {
			used += each[e]
		}
		sum = min(sum, max(0, int(*c.MaxConcurrency)-used))
	}
	return sum
}

// edited reports whether a Budget is another than when it was seen first.
func (w *world) edited(b *rqv1.Budget) bool {
	if w.unedited == nil {
		w.unedited = map[string]int64{}
	}
	if _, seen := w.unedited[b.Name]; !seen {
		w.unedited[b.Name] = b.Generation
	}
	return w.unedited[b.Name] != b.Generation
}

// checkCaps asserts that nobody pays for more than a Budget allows (I3). One that has been edited may: who paid for a
// rank goes on paying. Under a cap a rank counts once: until one that was lost runs again, the envelope that paid for
// it keeps the money although another envelope pays for its new place.
func (w *world) checkCaps() {
	usage, twice := w.Book.Budgets.Usage(), w.Book.AsideBeside()
	for _, name := range slices.Sorted(maps.Keys(w.Budgets)) {
		b := w.Budgets[name]
		if w.edited(b) {
			continue
		}
		used := map[string]int{}
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			used[e.Name] = usage[budget.Key{Budget: name, Envelope: e.Name}]
			if used[e.Name] > int(e.Concurrency) {
				w.t.Fatalf("I3: envelope %s of %s pays for %d of %d GPUs", e.Name, name, used[e.Name], e.Concurrency)
			}
		}
		for _, c := range b.Spec.AggregateCaps {
			sum := 0
			for _, e := range c.Envelopes {
				sum += used[e] - twice[budget.Key{Budget: name, Envelope: e}]
			}
			if sum > int(*c.MaxConcurrency) {
				w.t.Fatalf("I3: under cap %s of %s %d of %d GPUs are paid for", c.Name, name, sum, *c.MaxConcurrency)
			}
		}
	}
}
