package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestALongLine has 40 Runs wait for one node: the first 32 have dates, the others a place in line, and who comes to
// the front has a date.
func TestALongLine(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 1000)
	s.submit("holder", 8, lasting(time.Hour))
	s.await("holder", "Running", "bound 8 GPUs")
	name := func(i int) string { return fmt.Sprintf("waits-%02d", i) }
	for i := range 32 {
		s.submit(name(i), 8, lasting(time.Hour))
	}
	dated := func(first, last int) (errs error) {
		for i := first; i <= last; i++ {
			run, err := s.get(name(i))
			if err == nil && (run.Status.EarliestStart == nil || run.Status.Queue != nil) {
				err = fmt.Errorf("%s starts at %v, and has the place %+v", run.Name, run.Status.EarliestStart, run.Status.Queue)
			}
			errs = errors.Join(errs, err)
		}
		return errs
	}
	inLine := func(first, last int) (errs error) {
		for i := first; i <= last; i++ {
			run, err := s.get(name(i))
			if err == nil && (run.Status.EarliestStart != nil || run.Status.Queue == nil) {
				err = fmt.Errorf("%s starts at %v, and has the place %+v", run.Name, run.Status.EarliestStart, run.Status.Queue)
			}
			errs = errors.Join(errs, err)
		}
		return errs
	}
	eventually(t, "dates", func() error { return dated(0, 31) })
	for i := 32; i < 40; i++ { // a Run that is refused while fewer are in line has a date, and keeps it
		s.submit(name(i), 8, lasting(time.Hour))
	}
	eventually(t, "dates and places", func() error { return errors.Join(dated(0, 31), inLine(32, 39)) })
	next := s.run("next", 8, lasting(time.Hour))
	eventually(t, "the place of a Run that is not submitted", func() error {
		if q := s.planned(next).Queue; q == nil || q.Ahead != 40 || q.Of != 41 {
			return fmt.Errorf("it is %+v", q)
		}
		return nil
	})
	for _, command := range []string{"plan waits-39", "explain waits-39", "list -o wide", "plan"} {
		if said := s.runs(command + " -n " + s.namespace); !strings.Contains(said, "other Runs") {
			t.Errorf("%s does not tell how many are ahead of the last:\n%s", command, said)
		}
	}
	for i := range 8 {
		run, err := s.get(name(i))
		if err != nil {
			t.Fatal(err)
		}
		s.delete(run)
	}
	eventually(t, "dates of all", func() error { return dated(8, 39) })
}
