package resolver

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// putBackOneByOne takes back what is not needed with a question for each unit.
func (t *simulation) putBackOneByOne(drawn []int) {
	for i, p := range drawn {
		if i < len(drawn)-1 {
			t.putBack(p)
		}
	}
	steps := func(action rqv1.CutAction) {
		needed := make([]bool, len(t.candidates))
		for _, unit := range t.units {
			if unit.action == action && !needed[unit.candidate] && !t.endsAll(unit.candidate) {
				last, ok := t.lastStep(unit.candidate)
				ok = ok && t.units[last].action == action
				needed[unit.candidate] = !ok || !t.putBack(last)
			}
		}
	}
	steps(rqv1.CutShrink)
	for p, unit := range t.units {
		if unit.action == rqv1.CutDropSpare && t.chosen.has(p) && !t.endsAll(unit.candidate) {
			t.putBack(p)
		}
	}
	steps(rqv1.CutReturn)
}

// What is taken back of many at once is what is taken back one by one, in pools and in domains of a fleet.
func TestWhatIsTakenBackAtOnceIsWhatIsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 7, 10)
		for i := range s.candidates {
			for j := range s.candidates[i].Steps {
				s.candidates[i].Steps[j].Loan = j < i%3
			}
		}
		var w Feasibility = s.domain(t)
		if rapid.Bool().Draw(t, "fleet") {
			w = s.fleet(t)
		}
		one := newSimulation(w, s.candidates)
		defer one.restore()
		if one.fits() || !one.possible() {
			return // nothing is to be cut
		}
		order := one.structural()
		lottery := len(order)
		for _, p := range rapid.Permutation(one.tickets()).Draw(t, "drawn") {
			order = append(order, one.unitOf[p.Run])
		}
		n := one.cutUntilFits(order)
		drawn := order[min(n, lottery):n]
		cut := slices.Clone(one.chosen)
		one.putBackOneByOne(drawn)
		want := slices.Clone(one.chosen)
		one.chosen = cut
		one.putBackUnneeded(drawn)
		if diff := cmp.Diff(want, one.chosen); diff != "" {
			t.Fatalf("cut (-one by one +at once):\n%s", diff)
		}
	})
}

// BenchmarkResolve draws among many Runs of half a node each for one that takes a quarter of all nodes, wherever they
// are or all in one domain of eight.
func BenchmarkResolve(b *testing.B) {
	for _, runs := range []int{500, 5000} {
		for _, oneDomain := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/one domain=%v", runs, oneDomain), func(b *testing.B) {
				l := newLot(runs/2, 8)
				var candidates []Candidate
				for i := range runs {
					c := run(fmt.Sprint("o", i%20), fmt.Sprintf("r%04d", i))
					c.Rest, c.Ticket = l.take(4), true
					candidates = append(candidates, c)
				}
				f := topology.NewFleet([]string{"region", "fabric"}, "fabric")
				for i, name := range slices.Sorted(maps.Keys(l.free)) {
					domain := fmt.Sprint("f", i*8/len(l.free))
					f.SetNode(topology.Node{Name: name, Flavor: "H100", GPUs: 8,
						Labels: map[string]string{"region": "r", "fabric": domain}})
					f.Take(name, 8)
				}
				pods := runs / 8
				if oneDomain {
					pods /= 3
				}
				w := &fleet{f, topology.Request{Flavor: "H100", GPUsPerPod: 8, OneDomain: oneDomain,
					Groups: []topology.Group{{Pods: pods}}}}
				published := allCuts(candidates)
				asks := 0
				for b.Loop() {
					t := newSimulation(w, within(candidates, published))
					if _, ok := t.resolve(NewDraw(nonce(1), published), published); !ok {
						b.Fatal("it does not fit")
					}
					asks += t.asks
					t.restore()
				}
				b.ReportMetric(float64(asks)/float64(b.N), "questions/op")
			})
		}
	}
}
