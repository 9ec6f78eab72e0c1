// Package history measures what a past costs. On a control plane of real processes it starts a scheduler and submits
// Runs, once where nothing was before, and once beside Leases that are closed and Runs that have ended.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/test/controlplane"
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
const decides = "This process decides from now on"

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
	plane *controlplane.ControlPlane
	kube  kubernetes.Interface
	// api acts for the administrator, and ledger for the scheduler's account, which alone may write what has been.
	api, ledger client.WithWatch
	size        Size
}

func measure(ctx context.Context, size Size, log string) (f Figures, err error) {
	dir, err := os.MkdirTemp("", "jobtree-history-")
	if err != nil {
		return f, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, Kwok: true})
	if err != nil {
		return f, err
	}
	defer plane.Stop()
	l, err := newLab(plane, size)
	if err != nil {
		return f, err
	}
	for _, step := range []func(context.Context) error{l.loadNodes, l.loadOwner, l.writeLeases, l.writeRuns} {
		if err := step(ctx); err != nil {
			return f, fmt.Errorf("making the past: %w", err)
		}
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	f = Figures{Leases: size.Leases, Runs: size.Runs, Pods: size.Gangs * size.PodsPerGang}
	scheduler := filepath.Join(dir, "logs", "jobtree-scheduler.log")
	defer func() {
		text, unread := os.ReadFile(scheduler)
		err = errors.Join(err, unread, os.WriteFile(log, text, 0o644))
	}()
	began := time.Now()
	if err := l.lead(ctx, scheduler); err != nil {
		return f, err
	}
	f.LeadSeconds = time.Since(began).Seconds()
	f.Megabytes, err = megabytes(filepath.Join(dir, "jobtree-scheduler.pid"))
	if err != nil {
		return f, err
	}
	f.Seconds, err = l.submit(ctx)
	return f, err
}

// lead starts the scheduler and waits until it decides.
func (l *lab) lead(ctx context.Context, log string) error {
	if _, err := l.plane.StartScheduler(ctx, "jobtree-scheduler"); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		text, err := os.ReadFile(log)
		return bytes.Contains(text, []byte(decides)), err
	})
}

// until looks every now and then whether something has come about.
func until(ctx context.Context, look func() (bool, error)) error {
	for ticker := time.NewTicker(20 * time.Millisecond); ; {
		if done, err := look(); done || err != nil {
			ticker.Stop()
			return err
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func newLab(plane *controlplane.ControlPlane, size Size) (*lab, error) {
	l := &lab{plane: plane, size: size}
	var err error
	if l.kube, err = kubernetes.NewForConfig(plane.AdminConfig()); err != nil {
		return nil, err
	}
	if l.api, err = controllers.NewClient(plane.AdminConfig()); err != nil {
		return nil, err
	}
	as := plane.AdminConfig()
	as.Impersonate.UserName = "system:serviceaccount:" + controlplane.Namespace + ":" + controlplane.SchedulerAccount
	as.Impersonate.Groups = []string{"system:serviceaccounts", "system:authenticated"}
	l.ledger, err = controllers.NewClient(as)
	return l, err
}
