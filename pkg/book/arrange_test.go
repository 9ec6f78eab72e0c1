package book_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// evenly is a pod that is to be spread over nodes by a label.
func evenly(key string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule}}}}
}

// spreadOut is a check of pods that are planned on a node and are to be spread over zones, and the rule by which they
// are.
func spreadOut(spots map[string]book.Spot, planned string, pods, skew int) (*book.Check,
	func(book.Place) book.Verdict) {
	check, on := &book.Check{Spots: spots}, map[string]int{}
	for _, spot := range spots {
		on[spot.Labels["zone"]] = 0
	}
	for range pods {
		check.Places = append(check.Places, book.Place{Pod: evenly("zone"), Node: planned})
	}
	return check, func(p book.Place) book.Verdict {
		zone := spots[p.Node].Labels["zone"]
		for _, n := range on {
			if on[zone]+1-n > skew {
				return book.Skewed
			}
		}
		on[zone]++
		return book.Accepted
	}
}

// TestArrangedWhereNothingStandsAgainstIt: of the nodes on which pods that are to be spread may be, they come to those
// that nobody else had better have.
func TestArrangedWhereNothingStandsAgainstIt(t *testing.T) {
	for name, c := range map[string]struct {
		spots  string // zone and number, room, what stands against it
		skew   int    // more than 1
		pods   int
		manner book.Manner
		want   string
	}{
		"nothing does anywhere":      {spots: "a0:2:0 a1:1:0 b0:2:0", pods: 4, manner: book.Evenly, want: "a1 b0 a0 b0"},
		"shards on one":              {spots: "a0:2:2 a1:2:0 b0:2:0", pods: 4, want: "a1 b0 a1 b0"},
		"a Reservation's rather":     {spots: "a0:2:8 a1:1:4 b0:2:0", pods: 2, want: "b0 a1"},
		"a zone of none before":      {spots: "a0:2:8 b0:2:0 c0:2:0", pods: 2, want: "b0 c0"},
		"all the same if it must be": {spots: "a0:2:8 b0:1:4", pods: 2, want: "b0 a0"},
		"the rule lets it be":        {spots: "a0:2:0 b0:2:8", skew: 2, pods: 2, want: "a0 a0"},
		"nothing to spare":           {spots: "a0:2:0 a1:1:0 b0:2:1", pods: 4, want: ""},
		"it does, but evenly":        {spots: "a0:2:0 b0:2:8", skew: 2, pods: 2, manner: book.Evenly, want: "a0 b0"},
	} {
		t.Run(name, func(t *testing.T) {
			spots := map[string]book.Spot{}
			for _, field := range strings.Fields(c.spots) {
				var pods, avoid int
				at := strings.Split(field, ":")
				fmt.Sscan(at[1], &pods)
				fmt.Sscan(at[2], &avoid)
				spots[at[0]] = book.Spot{Pods: pods, Avoid: book.Avoidance(avoid), Labels: map[string]string{"zone": at[0][:1]}}
			}
			check, put := spreadOut(spots, "a0", c.pods, max(1, c.skew))
			if diff := cmp.Diff(c.want, strings.Join(check.Arrange(c.manner, false, put), " ")); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestArrangedWhereOthersMakeRoom: pods that are to be spread take what is free first, and of what others hold no more
// than they must; a spare has a node without ranks where there is one.
func TestArrangedWhereOthersMakeRoom(t *testing.T) {
	for name, c := range map[string]struct {
		spots        string // zone and number, room, room once others are gone
		skew         int
		pods, spares int
		want         string
	}{
		"a node in each zone":             {spots: "a0:0:2 a1:0:2 b0:0:2 b1:0:2", pods: 4, want: "a0 b0 a0 b0"},
		"in the zone that is full":        {spots: "a0:2:0 a1:0:2 b0:0:2 b1:0:2", pods: 4, want: "a0 b0 a0 b0"},
		"the rest of a node":              {spots: "a0:1:3 a1:2:0 b0:1:1", pods: 4, want: "a0 b0 a1 b0"},
		"nowhere if it need not be":       {spots: "a0:2:0 b0:0:2", skew: 2, pods: 2, want: "a0 a0"},
		"not enough in a zone":            {spots: "a0:2:2 b0:0:1", pods: 4, want: ""},
		"a spare by itself":               {spots: "a0:2:0 a1:2:0 b0:2:0", pods: 2, spares: 1, want: "a0 b0 a1"},
		"a spare where others have to go": {spots: "a0:2:0 b0:2:0 b1:0:2", pods: 4, spares: 1, want: "a0 b0 a0 b0 b1"},
		"a spare beside ranks":            {spots: "a0:2:0 b0:2:0", pods: 3, spares: 1, want: "a0 b0 a0 b0"},
	} {
		t.Run(name, func(t *testing.T) {
			spots := map[string]book.Spot{}
			for _, field := range strings.Fields(c.spots) {
				var now, then int
				at := strings.Split(field, ":")
				fmt.Sscan(at[1], &now)
				fmt.Sscan(at[2], &then)
				spots[at[0]] = book.Spot{Pods: now, Cleared: then, Labels: map[string]string{"zone": at[0][:1]}}
			}
			check, put := spreadOut(spots, "a0", c.pods, max(1, c.skew))
			for range c.spares {
				spare := &corev1.Pod{}
				spare.Labels = map[string]string{rqv1.LabelRole: string(rqv1.RoleSpare)}
				check.Places = append(check.Places, book.Place{Pod: spare, Node: "a0"})
			}
			of := func(p book.Place) book.Verdict {
				if p.Pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
					return book.Accepted
				}
				return put(p)
			}
			var got []string
			for _, manner := range book.Manners {
				if got == nil {
					got = check.Arrange(manner, true, of)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARefusalIsAskedForOnce: a node that refuses a pod for itself is not asked about again for each pod like it.
func TestARefusalIsAskedForOnce(t *testing.T) {
	spots := map[string]book.Spot{}
	for i := range 100 {
		spots[fmt.Sprint("a", i)] = book.Spot{Pods: 8, Labels: map[string]string{"zone": fmt.Sprint(i)}}
	}
	check, _ := spreadOut(spots, "a0", 50, 1)
	asked := 0
	got := check.Arrange(book.Evenly, false, func(p book.Place) book.Verdict {
		if asked++; p.Node < "a5" {
			return book.Refused
		}
		return book.Accepted
	})
	if len(got) != 50 || asked > 150 {
		t.Errorf("%d have a node, it was asked %d times", len(got), asked)
	}
}

// TestPodsOfTwoKindsComeInTheirOrder: of a group some pods are to be spread, and come one after the other; the others
// are waited for by nobody, also where most are made only once the first are bound.
func TestPodsOfTwoKindsComeInTheirOrder(t *testing.T) {
	late := func(s *rqv1.RunSpec) {
		theirs(s)
		s.Pods.Late, s.Pods.First = true, 2
	}
	for name, c := range map[string]struct {
		with    func(*rqv1.RunSpec)
		spreads func(slot int) bool
	}{
		"the last are spread":  {theirs, func(n int) bool { return n >= 2 }},
		"the first are spread": {theirs, func(n int) bool { return n < 2 }},
		"every other is":       {theirs, func(n int) bool { return n%2 == 1 }},
		"all are, made late":   {late, func(int) bool { return true }},
		"some are, made late":  {late, func(n int) bool { return n%2 == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.Book.AskRules()
				w.fleet("d0", 4)
				w.setBudget("a", "org:a", 64)
				w.controllers.spreads, w.Hasty = c.spreads, true
				w.submitWithSpares("run00", "org:a", 1, 6, 4, 0, c.with)
				startsWhole(t, w, 6)
			})
		})
	}
}

// TestSpreadPodsAwaitEachOther: a pod that is to be spread is let into the queue, and asked for, once those like it
// before it have their nodes, whatever becomes of the others.
func TestSpreadPodsAwaitEachOther(t *testing.T) {
	tell(t, func(w *world) {
		w.Book.AskRules()
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.controllers.spreads = func(n int) bool { return n >= 2 }
		w.submitWithSpares("run00", "org:a", 1, 6, 4, 0, theirs)
		w.control()
		w.reconcile("run00")
		slots := w.Slots(w.Runs["run00"].UID)
		let := func() (in []int) {
			for n := range 6 {
				if w.Book.Gate(slots[n][0]) == "" {
					in = append(in, n)
				}
			}
			return in
		}
		w.Place(w.Book, slots[0][0].UID)
		for n, want := range [][]int{0: {0, 1, 2}, 2: {0, 1, 2, 3}, 3: {0, 1, 2, 3, 4}} {
			if want == nil {
				continue
			}
			w.Book.ToQueue().Take()
			if err := w.Book.Reserve(slots[n][0].UID, w.Book.Assigned(slots[n][0].UID)); err != nil {
				w.t.Fatal(err)
			}
			if diff := cmp.Diff(want, let()); diff != "" {
				w.t.Fatalf("let in once slot %d has its node (-want +got):\n%s", n, diff)
			}
			var asked []string
			for _, pod := range w.Book.ToQueue().Take().Activate {
				asked = append(asked, pod.Name)
			}
			if n > 0 && !slices.Contains(asked, slots[n+1][0].Name) {
				w.t.Fatalf("once slot %d has its node %q are asked for", n, asked)
			}
		}
	})
}

// BenchmarkArrange has many pods be spread over many nodes, by zones and each by itself.
func BenchmarkArrange(b *testing.B) {
	for name, zoneOf := range map[string]func(n int) int{
		"zones": func(n int) int { return n % 3 },
		"nodes": func(n int) int { return n },
	} {
		b.Run(name, func(b *testing.B) {
			spots := map[string]book.Spot{}
			for i := range 5000 {
				spots[fmt.Sprint("n", i)] = book.Spot{Pods: 8, Labels: map[string]string{"zone": fmt.Sprint(zoneOf(i))},
					Shards: []types.UID{}}
			}
			for b.Loop() {
				check, _ := spreadOut(spots, "n0", 4096, 1)
				got := check.Arrange(book.Evenly, false, func(book.Place) book.Verdict { return book.Accepted })
				if len(got) != 4096 {
					b.Fatalf("%d have a node", len(got))
				}
			}
		})
	}
}
