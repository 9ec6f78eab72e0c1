package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// stream is small Runs that come and go beside a large one of the same owner, or of another that may spend its money.
type stream struct {
	*storm
	ends  map[string]time.Time
	count int
}

// TestALargeRunGetsItsTurnAtTheMoney has small Runs come without end, each as soon as another has ended, in any order
// and with any maxDuration, while processes die: the large one starts before long, and nobody who may hold it up has
// started since its money has been kept.
func TestALargeRunGetsItsTurnAtTheMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &stream{storm: newStorm(newWorld(t)), ends: map[string]time.Time{}}
		s.fleet("d0", 8)
		s.setBudget("a", "org:a", 32)
		if rapid.Bool().Draw(t, "a relative") {
			s.setBudget("b", "org:b", 8)
			s.setBudget("org", "org", 8)
		}
		for range 4 {
			s.comes(t)
		}
		s.work()
		s.during(time.Second)
		s.submit("large", "org:a", 4, 1, 8)
		s.work()
		began := s.Now
		for s.Runs["large"].Status.Phase != rqv1.RunRunning {
			if waited := s.Now.Sub(began); waited > 40*time.Minute {
				t.Fatalf("large has waited for %s\n%s", waited, s.story())
			}
			s.goes(t, began)
		}
	})
}

// comes has a small Run come, which runs for some minutes whatever it says.
func (s *stream) comes(t *rapid.T) {
	name, owner := fmt.Sprintf("small%d", s.count), rqv1.Owner("org:a")
	s.count++
	if s.Budgets["b"] != nil && rapid.IntRange(0, 3).Draw(t, "whose") == 0 {
		owner = "org:b"
	}
	var changes []func(*rqv1.RunSpec)
	if lasts := rapid.IntRange(-8, 8).Draw(t, "maxDuration"); lasts > 0 {
		changes = append(changes, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Duration(lasts) * time.Minute}}
		})
	}
	s.submitWithSpares(name, owner, 1, 1, rapid.SampledFrom([]int{4, 8}).Draw(t, "GPUs"), 0, changes...)
}

// goes has time pass: what has run for long enough ends, and others come for it.
func (s *stream) goes(t *rapid.T, since time.Time) {
	before := map[string]bool{}
	for name, run := range s.Runs {
		before[name] = run.Status.Phase == rqv1.RunRunning
	}
	kept := slices.Contains(s.Book.Keeps(), "large")
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		switch run := s.Runs[name]; {
		case name == "large":
		case run.Status.Phase == rqv1.RunRunning && s.ends[name].IsZero():
			s.ends[name] = s.Now.Add(time.Duration(rapid.IntRange(10, 400).Draw(t, "runs for")) * time.Second)
		case run.Status.Phase == rqv1.RunRunning && !s.Now.Before(s.ends[name]), run.Ended():
			s.DeleteRun(name)
		}
	}
	for waiting := 0; waiting < 6; waiting++ {
		if len(s.Runs) < 10 {
			s.comes(t)
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
		s.restart()
	}
	s.work()
	if large := s.Runs["large"]; large.Status.Phase == rqv1.RunRunning || s.Book.Prospect(large.UID).Promise != nil {
		kept = false // it needs no more, or has a date for which what it is to be paid from is kept
	}
	for name, run := range s.Runs {
		if lasts := run.Spec.MaxDuration(); kept && name != "large" && run.Status.Phase == rqv1.RunRunning && !before[name] &&
			run.CreationTimestamp.After(since) && (lasts == 0 || lasts > reservationLead) && s.paidBy(name, "a") {
			t.Fatalf("%s has started, while money is kept for large\n%s", name, s.story())
		}
	}
	s.during(time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds")) * time.Second)
}

// paidBy reports whether a Budget pays for a Run.
func (s *stream) paidBy(name, budget string) bool {
	return slices.ContainsFunc(s.OpenLeases(), func(l *rqv1.Lease) bool {
		return l.Spec.RunRef.Name == name && l.Spec.Payer.Budget == budget
	})
}

// BenchmarkStartBesideWaiting has a Run of 8 GPUs be planned beside so many of its owner that wait for money, for the
// first of which it is kept: that is to cost as much beside 1,000 as beside one. A sweep of the lines is to cost far
// less than a millisecond.
func BenchmarkStartBesideWaiting(b *testing.B) {
	for _, waiting := range []int{0, 1, 1000} {
		f := newFleetOf(b)
		f.leads = true
		most := f.budgetOf(0)
		most.Spec.Envelopes[0].Concurrency, most.Generation = 800, 2
		f.book.Budgets.SetBudget(most)
		f.book.Place(f.run(50, 1, nil)[0].UID, f.now)
		for i := range waiting {
			f.book.Place(f.run(100+50*i, 100+i, nil)[0].UID, f.now)
		}
		f.now = f.now.Add(24 * time.Hour)
		f.book.Settle(f.now)
		if kept := len(f.book.Keeps()); kept != min(waiting, 1) {
			b.Fatalf("money is kept for %d Runs", kept)
		}
		for of, i := range map[string]int{"own": 80000, "other": 80001} {
			young := f.run(i, 1, nil)
			b.Run(fmt.Sprintf("%s/waiting=%d", of, waiting), func(b *testing.B) {
				for b.Loop() {
					f.book.Place(young[0].UID, f.now)
					f.book.Unreserve(young[0].UID, f.now)
				}
			})
		}
		b.Run(fmt.Sprintf("settle=%d", waiting), func(b *testing.B) {
			for b.Loop() {
				f.book.Settle(f.now)
			}
		})
	}
}

// lines has 20 Runs of each of 50 owners wait for money. For none of them something is kept: there are fewer nodes that
// their pods select than they want, as is found by a look at all nodes.
func (f *fleetOf) lines() {
	f.leads = true
	for owner := range 50 {
		most := f.budgetOf(owner)
		most.Spec.Envelopes[0].Concurrency, most.Generation = 1600, 2
		f.book.Budgets.SetBudget(most)
		f.book.Place(f.run(50+owner, 1, nil)[0].UID, f.now)
	}
	f.selects = map[string]string{"fabric.domain": "d00"}
	for i := range 1000 {
		if _, refusal := f.book.Place(f.run(100+i, 200, nil)[0].UID, f.now); refusal == nil || !refusal.LacksMoney() {
			f.tb.Fatalf("refused: %v", refusal)
		}
	}
	f.now = f.now.Add(time.Hour)
}

// BenchmarkSettleLines has nodes change all the time, while 1,000 Runs of 50 owners wait whose pods select nodes. No
// sweep is to hold the book for more than 20 ms.
func BenchmarkSettleLines(b *testing.B) {
	f := newFleetOf(b)
	f.lines()
	longest := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		f.book.SetNode(f.node(0, 8-i%2))
		began := time.Now()
		f.book.Settle(f.now)
		longest = max(longest, time.Since(began))
		f.now = f.now.Add(time.Second)
	}
	b.ReportMetric(float64(longest)/1e6, "longest-ms")
}
