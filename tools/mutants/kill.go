package main

import (
	"context"
	"fmt"
	"time"
)

// What comes of a mutant.
const (
	killed    = "killed"
	survived  = "survived"
	uncovered = "covered by no test"
)

// result is a mutant with what came of it.
type result struct {
	mutant
	State string `json:"state"`
	// By is the test that noticed it, and How whether that failed, crashed or took too long.
	By  string `json:"by,omitempty"`
	How string `json:"how,omitempty"`
	// Tests is how many tests reach it, Left how many of them did not run since the time was over.
	Tests int `json:"tests"`
	Left  int `json:"left,omitempty"`
	// Real says what was done on a real control plane; empty for nothing.
	Real    string  `json:"real,omitempty"`
	Seconds float64 `json:"seconds"`
}

// try runs the tests that reach a mutant until one fails.
func (s *state) try(ctx context.Context, m *mutant) (*result, error) {
	r := &result{mutant: *m, State: uncovered}
	began := time.Now()
	defer func() { r.Seconds = time.Since(began).Seconds() }()
	chunks := plan(m, s.tests, s.units)
	for _, c := range chunks {
		r.Tests += len(c.tests)
	}
	for _, c := range chunks {
		r.State = survived
		left := s.limit - time.Since(began)
		if left <= 0 {
			r.Left += len(c.tests)
			continue
		}
		usual := time.Duration(c.seconds * float64(time.Second))
		enough := s.patience + 5*usual
		o, err := c.binary.run(ctx, c.tests, min(enough, left+usual), fmt.Sprintf("JOBTREE_MUTANT=%d", m.ID))
		if err != nil {
			return nil, err
		}
		if !o.failed {
			continue
		}
		if o.how == "time limit" && left+usual < enough { // it was not given the time that shows a hang
			r.Left += len(c.tests)
			continue
		}
		r.State, r.How, r.By = killed, o.how, c.binary.pkg+" "+o.by
		break
	}
	return r, nil
}
