package resolver

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestOdds(t *testing.T) {
	spares := func(own Candidate, l *lot, each int, indexes ...int) Candidate {
		for _, i := range indexes {
			own.Spares = append(own.Spares, Spare{Index: i, Holds: l.take(each)})
		}
		return own
	}
	rest := func(own Candidate, l *lot, size int) Candidate {
		own.Rest, own.Ticket = l.take(size), true
		return own
	}
	for _, tc := range []struct {
		name string
		pods int // of 4 GPUs, in 8 nodes of 4
		make func(l *lot) []Candidate
		want string // "none" when the Run cannot start
	}{
		{"it fits", 2, func(l *lot) []Candidate { return []Candidate{rest(run("a", "x"), l, 24)} }, ""},
		{"never", 6, func(l *lot) []Candidate {
			l.take(16)
			return []Candidate{rest(run("a", "x"), l, 4)}
		}, "none"},
		{"some of the spares are enough", 3, func(l *lot) []Candidate {
			return []Candidate{rest(spares(run("b", "x"), l, 4, 1, 2, 3), l, 8), spares(run("a", "y"), l, 4, 9)}
		}, "DropSpare org:a ns-a/y 4 1\n"},
		{"a part of an entry", 4, func(l *lot) []Candidate {
			return []Candidate{rest(spares(run("b", "x"), l, 4, 1, 2, 3), l, 8)}
		}, "DropSpare org:b ns-b/x 12 1\n"},
		{"a ticket takes its spares along", 8, func(l *lot) []Candidate {
			return []Candidate{rest(spares(run("b", "x"), l, 4, 1, 2), l, 8), rest(run("c", "y"), l, 4)}
		}, "Lottery org:b ns-b/x 16 1\nLottery org:c ns-c/y 4 1\n"},
		{"only spares of one without a ticket", 4, func(l *lot) []Candidate {
			x := rest(spares(run("b", "x"), l, 4, 1), l, 4)
			x.Ticket = false
			return []Candidate{x, rest(run("c", "y"), l, 4), rest(run("d", "z"), l, 12)}
		}, "DropSpare org:b ns-b/x 4 0.5\nLottery org:c ns-c/y 4 0.5\nLottery org:d ns-d/z 12 0.5\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLot(8, 4)
			candidates := tc.make(l)
			set, how, ok := Odds(&domain{free: l.free, pods: tc.pods, each: 4}, candidates)
			got := Text(set)
			if !ok {
				got = "none"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || (ok && how != "exact") {
				t.Errorf("%q odds (-want +got):\n%s", how, diff)
			}
		})
	}
}

// TestOddsAreFrequencies draws 2,000 times in each of dozens of states, within four standard deviations.
func TestOddsAreFrequencies(t *testing.T) {
	lotteries := 0
	for example := range 300 {
		s := rapid.Custom(func(t *rapid.T) *state { return drawState(t, 6, 7) }).Example(example)
		w := rapid.Custom(s.domain).Example(example)
		set, how, ok := Odds(w, s.candidates)
		if !ok || how != "exact" || len(Tickets(set)) == 0 {
			continue
		}
		lotteries++
		checkFrequencies(t, w, s.candidates, set, 2000, func(p float64) float64 { return 4*math.Sqrt(p*(1-p)/2000) + 0.0001 })
	}
	if lotteries < 24 {
		t.Errorf("%d states with a lottery, want at least 24", lotteries)
	}
}

func checkFrequencies(t *testing.T, w Feasibility, candidates []Candidate, set []rqv1.Conflict, draws int,
	margin func(p float64) float64) {
	met := map[entryKey]int{}
	for n := range draws {
		plan, _ := Resolve(w, candidates, set, nonce(n))
		for _, c := range plan.Cuts {
			met[entryKey{c.Run, c.Action}]++
		}
	}
	for _, c := range set {
		p, err := strconv.ParseFloat(c.Probability, 64)
		got := float64(met[entryKey{c.Run, c.Action}]) / float64(draws)
		if err != nil || math.Abs(p-got) > margin(p) {
			t.Errorf("%s of %s has probability %s and frequency %.4f\n%s", c.Action, c.Run.Name, c.Probability, got, Text(set))
		}
	}
}

// crowd is many candidates in a domain of 128 nodes of 8.
func crowd(candidates, pods int) (*domain, []Candidate) {
	l := newLot(128, 8)
	var out []Candidate
	for i := range candidates {
		own := run(fmt.Sprint("o", i%9), fmt.Sprint("r", i))
		own.Rest, own.Ticket = l.take(4+i%3*4), true
		if i%4 == 0 {
			own.Steps = []Step{{Width: 8, Holds: l.take(4)}, {Width: 4, Holds: l.take(4)}}
		}
		if i%5 == 0 {
			own.Spares = []Spare{{Index: 8, Holds: l.take(4)}}
		}
		out = append(out, own)
	}
	l.take(1024 - l.used) // the rest is nobody's to cut
	return &domain{free: l.free, pods: pods, each: 8}, out
}

// TestSampledOdds draws 2,000 times and compares with the sample, of which hardly any of its dozens of probabilities is
// further off than twice the margin that is stated.
func TestSampledOdds(t *testing.T) {
	w, candidates := crowd(20, 20)
	set, how, ok := Odds(w, candidates)
	var size int
	var within float64
	if n, err := fmt.Sscanf(how, "sampled %d, within %f at 95 %%", &size, &within); n != 2 || err != nil || !ok ||
		size < 30 || within > 0.2 {
		t.Fatalf("odds are %q, %v: %v", how, ok, err)
	}
	checkFrequencies(t, w, candidates, set, 2000, func(float64) float64 { return 2 * within })
	listed := map[rqv1.CutAction]int{}
	for _, c := range set {
		listed[c.Action]++
	}
	if diff := cmp.Diff(map[rqv1.CutAction]int{rqv1.CutDropSpare: 4, rqv1.CutShrink: 5, rqv1.CutLottery: 20},
		listed); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	seed := nonce(1)
	plan, _ := Resolve(w, candidates, set, seed)
	if found := Verify(record(set, how, seed, plan)); len(found) > 0 {
		t.Errorf("the record is not valid: %q", found)
	}
}

// TestExactWithManyTickets: two of 25 tickets are enough, so that all ways to draw can be walked.
func TestExactWithManyTickets(t *testing.T) {
	l := newLot(25, 8)
	var candidates []Candidate
	for i := range 25 {
		own := run(fmt.Sprint("o", i/5), fmt.Sprint("r", i))
		own.Rest, own.Ticket = l.take(8), true
		candidates = append(candidates, own)
	}
	for _, tc := range []struct {
		pods int
		want string
	}{{1, "0.04"}, {2, "0.08"}} {
		set, how, _ := Odds(&domain{free: l.free, pods: tc.pods, each: 8}, candidates)
		for _, c := range set {
			if how != "exact" || c.Probability != tc.want {
				t.Fatalf("%d pods: %s has probability %s, %s; want exactly %s", tc.pods, c.Run.Name, c.Probability, how, tc.want)
			}
		}
	}
}

func TestMargin(t *testing.T) {
	got := map[int]string{}
	for _, n := range []int{1, 10, 100, 385, 400} {
		got[n] = margin(n)
	}
	want := map[int]string{1: "0.98", 10: "0.31", 100: "0.1", 385: "0.05", 400: "0.05"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("half-widths by size of the sample (-want +got):\n%s", diff)
	}
}

// TestOddsAskLittle bounds the questions to feasibility, which are what takes time.
func TestOddsAskLittle(t *testing.T) {
	for _, pods := range []int{25, 40, 60, 80} {
		w, candidates := crowd(70, pods)
		if _, how, ok := Odds(w, candidates); !ok || w.asks > 1000 {
			t.Errorf("%d pods: %d questions, odds %q, %v; want at most 1000", pods, w.asks, how, ok)
		} else {
			t.Logf("%d pods: %d questions, %s", pods, w.asks, how)
		}
	}
}

func BenchmarkOdds(b *testing.B) {
	for _, size := range []int{6, 70} {
		b.Run(fmt.Sprint(size, " candidates"), func(b *testing.B) {
			w, candidates := crowd(size, 7*size/10)
			w.asks = 0
			for b.Loop() {
				Odds(w, candidates)
			}
			b.ReportMetric(float64(w.asks)/float64(b.N), "questions/op")
		})
	}
}
