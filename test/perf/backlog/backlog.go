// Package backlog measures how fast queues of many short Runs are worked off: the baseline that Kueue publishes, with
// real pods. Queues in cohorts lend each other their GPUs; each gets small, medium and large Runs at a pace that is
// more than it can take. The scheduler's own process works against a control plane of real processes, in which kwok
// plays the kubelets and ends each pod when its time is over.
package backlog

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/davidlangworthy/jobtree/test/controlplane"
	"github.com/davidlangworthy/jobtree/test/perf/fleet"
)

// Size is how many queues there are, and which part of the Runs of a class each of them gets.
type Size struct {
	Cohorts, QueuesPerCohort int
	// Share is a divisor: 1 is all Runs of the published baseline.
	Share int
	// Target is how long all of it may take; 0 where there is no such figure.
	Target time.Duration
}

// class is a kind of Run: so many for each queue, one every interval, each of one pod that runs so long.
type class struct {
	name     string
	count    int
	gpus     int32
	runs     time.Duration
	interval time.Duration
}

// classes are those of Kueue's baseline (test/performance/scheduler/configs/baseline in its repository).
var classes = []class{
	{"small", 350, 1, 200 * time.Millisecond, 100 * time.Millisecond},
	{"medium", 100, 5, 500 * time.Millisecond, 500 * time.Millisecond},
	{"large", 50, 20, time.Second, 1200 * time.Millisecond},
}

// queueGPUs is what each queue has of its own.
const queueGPUs = 20

// perQueue is how many Runs of a class each queue gets.
func (s Size) perQueue(c class) int { return max(1, c.count/s.Share) }

func (s Size) queues() int { return s.Cohorts * s.QueuesPerCohort }

// Runs returns how many there are in all.
func (s Size) Runs() int {
	sum := 0
	for _, c := range classes {
		sum += s.queues() * s.perQueue(c)
	}
	return sum
}

// Outcome is what one measurement comes to.
type Outcome struct {
	Runs int `json:"runs"`
	// Seconds is from the first submission to the last end.
	Seconds float64 `json:"seconds"`
	// Target is what Seconds is to stay below; 0 for none.
	Target  float64 `json:"targetSeconds,omitempty"`
	Classes []Class `json:"classes"`
	// PeakBytes is the most memory that each process had resident.
	PeakBytes map[string]int64 `json:"peakBytes"`
}

// Class is how long Runs of a class waited, from submission until their pod was bound, in seconds.
type Class struct {
	Name string  `json:"name"`
	Runs int     `json:"runs"`
	Mean float64 `json:"meanSeconds"`
	P95  float64 `json:"p95Seconds"`
}

// lab is the world that is worked in.
type lab struct {
	*fleet.Lab
	view *view
	size Size
}

// Measure makes the queues, submits all Runs and returns what was seen. The scheduler's log is copied to log.
func Measure(ctx context.Context, size Size, log string) (outcome *Outcome, err error) {
	err = fleet.With(ctx, true, log, func(ctx context.Context, world *fleet.Lab) error {
		l := &lab{Lab: world, view: newView(), size: size}
		if err := fleet.InTurn(ctx, "queues", l.loadNodes, l.loadQueues, l.follow, l.warmUp); err != nil {
			return err
		}
		outcome, err = l.measure(ctx)
		return err
	})
	return outcome, err
}

// measure submits every queue's Runs at their pace, and waits until the last has ended.
func (l *lab) measure(ctx context.Context) (*Outcome, error) {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for queue := range l.size.queues() {
		for _, c := range classes {
			group.Go(func() error { return l.submit(ctx, queue, c) })
		}
	}
	group.Go(func() error { return l.view.until(ctx, l.size.Runs(), l.report) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	outcome := &Outcome{Runs: l.size.Runs(), Seconds: l.view.lastEnd().Sub(began).Seconds(),
		Target: l.size.Target.Seconds(), PeakBytes: map[string]int64{}}
	for _, c := range classes {
		outcome.Classes = append(outcome.Classes, l.view.waited(c.name))
	}
	for _, p := range []*controlplane.Process{
		l.Plane.Scheduler, l.Plane.APIServer, l.Plane.Etcd, l.Plane.Kwok, l.Plane.ControllerManager,
	} {
		peak, err := p.PeakMemory()
		if err != nil {
			return nil, err
		}
		outcome.PeakBytes[p.Name] = peak
	}
	return outcome, nil
}

// report tells how far the work has come.
func (l *lab) report(bound, ended int) {
	fmt.Fprintf(os.Stderr, "perf: Backlog: of %d Runs %d have started and %d ended\n", l.size.Runs(), bound, ended)
}
