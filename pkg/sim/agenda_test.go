package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestAgenda has things happen in any order, put off and taken off, and compares with a map that is walked.
func TestAgenda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(0, 0)
		a, now, want := newAgenda[string](), begin, map[string]time.Time{}
		key := func(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key") }
		after := func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(-2, 5).Draw(t, "seconds")) * time.Second
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, at := key(t), now.Add(after(t))
				a.Set(k, at)
				want[k] = at
			},
			"delete": func(t *rapid.T) {
				k := key(t)
				a.Delete(k)
				delete(want, k)
			},
			"shift": func(t *rapid.T) {
				by := after(t)
				a.Shift(by)
				for k := range want {
					want[k] = want[k].Add(by)
				}
			},
			"due": func(t *rapid.T) {
				now = now.Add(max(0, after(t)))
				var due []string
				for _, k := range []string{"a", "b", "c", "d"} {
					if at, has := want[k]; has && !at.After(now) {
						due = append(due, k)
					}
				}
				slices.SortStableFunc(due, func(x, y string) int { return want[x].Compare(want[y]) })
				for _, k := range due {
					delete(want, k)
				}
				if diff := cmp.Diff(due, a.Due(now)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			},
			"": func(t *rapid.T) {
				var first time.Time
				for _, at := range want {
					if first.IsZero() || at.Before(first) {
						first = at
					}
				}
				if _, at, ok := a.First(); ok != (len(want) > 0) || !at.Equal(first) || a.Len() != len(want) {
					t.Fatalf("the first is at %s, %t, of %d; want %v", at, ok, a.Len(), want)
				}
			},
		})
	})
}

// TestFaults makes writes of several kinds by a plan.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		plan   []Fault
		writes []Kind
		want   []Effect
	}{
		"none": {writes: []Kind{Statuses}, want: []Effect{Written}},
		"the second": {plan: []Fault{{Of: All, After: 1, Do: Late}}, writes: []Kind{Statuses, Closings, Statuses},
			want: []Effect{Written, Late, Written}},
		"of one kind": {plan: []Fault{{Of: Closings, Do: Refused}}, writes: []Kind{Statuses, Closings, Closings},
			want: []Effect{Written, Refused, Written}},
		"from then on": {plan: []Fault{{Of: Creations, After: 1, Do: Refused, Lasts: true}},
			writes: []Kind{Creations, Statuses, Creations, Creations}, want: []Effect{Written, Written, Refused, Refused}},
		"one by one": {plan: []Fault{{Of: All, Do: Late}, {Of: All, Do: Refused}},
			writes: []Kind{Bindings, Bindings, Bindings}, want: []Effect{Late, Refused, Written}},
	} {
		var f Faults
		f.Add(c.plan...)
		var got []Effect
		for _, kind := range c.writes {
			if next := f.Next(kind); next != f.at(kind) {
				t.Errorf("%s: the next is another than was foretold: %d", name, next)
			} else {
				got = append(got, next)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var f Faults
	f.Add(Fault{Of: All, Do: Crash}, Fault{Of: All, Do: Late})
	if f.Drop(Crash); f.Next(Statuses) != Late {
		t.Errorf("%+v is left", f.plan)
	}
}
