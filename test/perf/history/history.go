// Package history measures what a past costs. On a control plane of real processes it starts a scheduler and submits
// Runs, once where nothing was before, and once beside Leases that are closed and Runs that have ended.
package history

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/test/controlplane"
	"github.com/davidlangworthy/jobtree/test/perf/fleet"
)

// Size is how much there is and was.
type Size struct {
	// Nodes of 4 GPUs, in domains of 18, which kwok plays.
	Nodes int
	// Gangs of so many pods of one GPU are submitted.
	Gangs, PodsPerGang int
	// Leases are closed, and Runs have ended, before the scheduler starts.
	Leases, Runs int
}

// Figures are what is measured beside one past.
type Figures struct {
	Leases, Runs int // of the past
	Pods         int
	// LeadSeconds is from the start of the scheduler's process until it decides.
	LeadSeconds float64
	// Seconds is from the first Run that is submitted until the last pod is bound.
	Seconds float64
	// Megabytes is what the scheduler has in memory when it begins to decide.
	Megabytes float64
}

// patience is how long anything may take but for the making of the past.
const patience = 10 * time.Minute

// decides is what the scheduler logs when it begins to.
const decides = "This process leads from now on"

// Measure returns the figures without a past, and with one. The schedulers' logs are copied to files whose names begin
// as told.
func Measure(ctx context.Context, size Size, log string) (empty, full Figures, err error) {
	without := size
	without.Leases, without.Runs = 0, 0
	if empty, err = measure(ctx, without, log+"-empty.log"); err != nil {
		return empty, full, err
	}
	full, err = measure(ctx, size, log+".log")
	return empty, full, err
}

// lab is the world that a scheduler comes into.
type lab struct {
	*fleet.Lab
	// ledger acts for the scheduler's account, which alone may write what has been.
	ledger client.WithWatch
	size   Size
}

func measure(ctx context.Context, size Size, log string) (f Figures, err error) {
	err = fleet.With(ctx, false, log, func(ctx context.Context, world *fleet.Lab) error {
		as := world.Plane.AdminConfig()
		as.Impersonate.UserName = "system:serviceaccount:" + controlplane.Namespace + ":" + controlplane.SchedulerAccount
		as.Impersonate.Groups = []string{"system:serviceaccounts", "system:authenticated"}
		ledger, err := controllers.NewClient(as)
		if err != nil {
			return err
		}
		l := &lab{Lab: world, ledger: ledger, size: size}
		if err := fleet.InTurn(ctx, "past", l.loadNodes, l.loadOwner, l.writeLeases, l.writeRuns); err != nil {
			return err
		}
		f, err = l.measure(ctx)
		return err
	})
	return f, err
}

// measure has a scheduler come into the world, and submits Runs to it.
func (l *lab) measure(ctx context.Context) (Figures, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	f := Figures{Leases: l.size.Leases, Runs: l.size.Runs, Pods: l.size.Gangs * l.size.PodsPerGang}
	began := time.Now()
	scheduler, err := l.lead(ctx)
	if err != nil {
		return f, err
	}
	f.LeadSeconds = time.Since(began).Seconds()
	resident, err := scheduler.Memory()
	if err != nil {
		return f, err
	}
	f.Megabytes = float64(resident) / (1 << 20)
	f.Seconds, err = l.submit(ctx)
	return f, err
}

// lead starts the scheduler and waits until it decides.
func (l *lab) lead(ctx context.Context) (*controlplane.Process, error) {
	scheduler, err := l.Plane.StartScheduler(ctx, fleet.Scheduler)
	if err != nil {
		return nil, err
	}
	return scheduler, scheduler.WaitUntil(ctx, func(context.Context) error {
		text, err := os.ReadFile(scheduler.LogFile)
		if err == nil && !bytes.Contains(text, []byte(decides)) {
			err = errors.New("it does not decide yet")
		}
		return err
	})
}
