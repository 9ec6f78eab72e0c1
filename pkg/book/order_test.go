package book_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// waitingLine has a Run hold all GPUs and others wait for them, each younger than the one before it. They are of 8
// GPUs, of the owner and with the class that are given.
func (s *storm) waitingLine(runs ...[3]string) {
	s.class("high", 1000)
	s.class("low", 10)
	s.addNode("n0", "d0")
	for _, owner := range []rqv1.Owner{"org:a", "org:b"} {
		s.setBudget(string(owner), owner, 64)
	}
	s.submitWithSpares("holder", "org:b", 1, 1, 8, 0)
	s.work()
	for _, r := range runs {
		s.during(time.Second)
		s.submitWithSpares(r[0], rqv1.Owner(r[1]), 1, 1, 8, 0, of(r[2]))
		s.work()
	}
	s.running("holder", "although there was room")
}

// next ends the Run that runs, and asserts which one starts then.
func (s *storm) next(ends, starts string) {
	s.finish(ends)
	s.disturb()
	s.work()
	s.during(time.Second)
	s.work()
	s.running(starts, "although it is next")
	for name, run := range s.Runs {
		if name != starts && run.Status.Phase == rqv1.RunRunning {
			s.t.Fatalf("%s runs, too", name)
		}
	}
}

// A Run starts from the place of an older one of its owner that has a lower priority. That one has its place then, so
// that it does not let a third one pass the Runs of others.
func TestARunStartsFromThePlaceOfALesserOne(t *testing.T) {
	for name, restarts := range map[string]bool{"": false, "also for a process that begins meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			tellLongStorm(t, func(s *storm) {
				s.waitingLine([3]string{"low0", "org:a", "low"}, [3]string{"other0", "org:b", ""},
					[3]string{"high0", "org:a", "high"}, [3]string{"other1", "org:b", ""})
				s.next("holder", "high0")
				if since, want := s.Runs["low0"].Status.PlaceSince, s.Runs["high0"].CreationTimestamp; !since.Equal(&want) {
					s.t.Fatalf("low0 has its place since %v, and gave way to a Run of %s", since, want)
				}
				if since := s.Runs["high0"].Status.PlaceSince; since != nil {
					s.t.Fatalf("high0 runs, and has a place since %s", since)
				}
				s.during(time.Second)
				s.submitWithSpares("high1", "org:a", 1, 1, 8, 0, of("high"))
				s.work()
				if restarts {
					s.restart()
					s.work()
				}
				s.next("high0", "other0")
				s.next("other0", "high1")
				s.next("high1", "other1")
				s.next("other1", "low0")
			})
		})
	}
}

// Nobody passes a Run of another owner by it, nor one that asks for more, nor without a higher priority; and a class
// that comes, or changes, does the same as one that was there.
func TestARunTakesNoPlaceButOfALesserOneOfItsOwner(t *testing.T) {
	run := func(owner, class string) [3]string { return [3]string{"", "org:" + owner, class} }
	for name, c := range map[string]struct {
		first, second [3]string
		change        func(s *storm)
		passes        bool
	}{
		"of another owner":         {first: run("b", "low"), second: run("a", "high")},
		"of the same priority":     {first: run("a", "high"), second: run("a", "high")},
		"of a higher one":          {first: run("a", "high"), second: run("a", "low")},
		"whose class is not there": {first: run("a", "gone"), second: run("a", "high")},
		"of a lower one":           {first: run("a", "low"), second: run("a", "high"), passes: true},
		"of no class":              {first: run("a", ""), second: run("a", "low"), passes: true},
		"once its class is there": {first: run("a", "low"), second: run("a", "new"), passes: true,
			change: func(s *storm) { s.class("new", 20) }},
		"until its class goes": {first: run("a", "low"), second: run("a", "high"),
			change: func(s *storm) { delete(s.classes, "high"); s.Book.DropPriorityClass("high") }},
	} {
		t.Run(name, func(t *testing.T) {
			tellLongStorm(t, func(s *storm) {
				c.first[0], c.second[0] = "first", "second"
				s.waitingLine(c.first, c.second)
				if c.change != nil {
					c.change(s)
					s.disturb()
					s.work()
				}
				want := "first"
				if c.passes {
					want = "second"
				}
				s.next("holder", want)
			})
		})
	}
}

// The place in line that Runs are told is the one that they have, and the scheduling queue goes by it.
func TestThePlaceThatIsToldIsTheOneTaken(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		s.waitingLine([3]string{"low0", "org:a", "low"}, [3]string{"other0", "org:b", ""},
			[3]string{"high0", "org:a", "high"})
		names := []string{"low0", "other0", "high0"}
		slices.SortFunc(names, func(x, y string) int { return s.Book.Ahead(s.Runs[x].UID) - s.Book.Ahead(s.Runs[y].UID) })
		if want := []string{"high0", "other0", "low0"}; !slices.Equal(names, want) {
			s.t.Fatalf("in line are %v, want %v", names, want)
		}
		pods := s.SortedPods()
		slices.SortFunc(pods, func(x, y types.UID) int {
			switch a, b := s.Pods[x], s.Pods[y]; {
			case s.Book.Less(a, b):
				return -1
			case s.Book.Less(b, a):
				return 1
			}
			return 0
		})
		var got []string
		for _, uid := range pods {
			if run := s.Pods[uid].Labels[rqv1.LabelRun]; run != "holder" {
				got = append(got, run)
			}
		}
		if want := []string{"high0", "other0", "low0"}; !slices.Equal(got, want) {
			s.t.Fatalf("in the scheduling queue are %v, want %v", got, want)
		}
		trial := s.Runs["high0"].DeepCopy()
		trial.Name, trial.UID = "trial", "trial"
		trial.Spec.PriorityClassName, trial.CreationTimestamp.Time = "high", s.Now
		if at := s.Book.AheadOf(trial, s.Now); at != 2 {
			s.t.Errorf("a Run of high priority would have %d ahead of it, want 2", at)
		}
		trial.Spec.PriorityClassName = ""
		if at := s.Book.AheadOf(trial, s.Now); at != 3 {
			s.t.Errorf("a Run of no class would have %d ahead of it, want 3", at)
		}
	})
}

// datesOf returns what dates the waiting Runs of an owner are promised.
func (s *storm) datesOf(owner rqv1.Owner) (out []string) {
	for name, run := range s.Runs {
		if at := run.Status.EarliestStart; run.Spec.Owner == owner && run.Status.Phase == rqv1.RunPending && at != nil {
			out = append(out, fmt.Sprintf("%s is promised %s", name, at.UTC().Format(time.TimeOnly)))
		}
	}
	slices.Sort(out)
	return out
}

// Whatever one owner does with its priorities, Runs of one shape of another owner start at the same turns, and are
// promised the same dates.
func TestPrioritiesAreNothingToOtherOwners(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		const many = 6
		owners := rapid.SliceOfN(rapid.SampledFrom([]string{"org:a", "org:b"}), many, many).Draw(s.t, "owners")
		classes := rapid.SliceOfN(rapid.SampledFrom([]string{"", "low", "high"}), many, many).Draw(s.t, "classes")
		var plain, ranked [][3]string
		for i, owner := range owners {
			name, class := fmt.Sprintf("waits%d", i), classes[i]
			if owner == "org:b" {
				class = ""
			}
			plain, ranked = append(plain, [3]string{name, owner, ""}), append(ranked, [3]string{name, owner, class})
		}
		played := func(s *storm, line [][3]string) (others []string) {
			s.waitingLine(line...)
			for range 9 { // some may have been found to have no date, which is looked into again after a while
				s.during(10 * time.Second)
				s.work()
			}
			for range line {
				others = append(others, s.datesOf("org:b")...)
				for name, run := range s.Runs {
					if run.Status.Phase == rqv1.RunRunning {
						s.finish(name)
					}
				}
				s.disturb()
				s.work()
				s.during(time.Second)
				s.work()
				for name, run := range s.Runs {
					if run.Status.Phase == rqv1.RunRunning && run.Spec.Owner == "org:b" {
						others = append(others, name+" starts")
					} else if run.Status.Phase == rqv1.RunRunning {
						others = append(others, "another starts")
					}
				}
			}
			return others
		}
		if diff := cmp.Diff(played(s, plain), played(newStorm(newWorld(s.t)), ranked)); diff != "" {
			s.t.Fatalf("by age and by the classes %v (-by age +by classes):\n%s", classes, diff)
		}
	})
}
