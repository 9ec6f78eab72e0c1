package book

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhoYieldsToWhom is about the Runs of one owner alone.
func TestWhoYieldsToWhom(t *testing.T) {
	run := func(owner rqv1.Owner, class string) *rqv1.Run {
		return &rqv1.Run{Spec: rqv1.RunSpec{Owner: owner, PriorityClassName: class}}
	}
	classes := priorities{"high": 100, "low": 1}
	for name, c := range map[string]struct {
		run, other *rqv1.Run
		yields     bool
	}{
		"a lower one":                  {run("a", "low"), run("a", "high"), true},
		"one without a class":          {run("a", ""), run("a", "low"), true},
		"an equal one":                 {run("a", "high"), run("a", "high"), false},
		"a higher one":                 {run("a", "high"), run("a", "low"), false},
		"another owner's":              {run("b", "low"), run("a", "high"), false},
		"one whose class is not there": {run("a", "gone"), run("a", "high"), false},
		"to one whose class is not":    {run("a", "low"), run("a", "gone"), false},
	} {
		if got := classes.yieldsTo(c.run, c.other); got != c.yields {
			t.Errorf("%s yields: %v, want %v", name, got, c.yields)
		}
	}
}
