// Command demo shows jobtree at work: `make demo`. It starts a control plane of its own with the sample fleet, submits
// the samples, shows what happens to them as it happens, and checks that it is what should happen. It exits with code 1
// if anything is not as it should be, and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// limit is the longest that the demo may take; it takes about a quarter of that.
const limit = 2 * time.Minute

func main() {
	runtime.LockOSThread() // children are killed when the thread that started them ends
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the demo has not ended after %v", limit))
	err := run(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // what failed is only a consequence
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		os.Exit(1)
	}
}

// run plays the demo between the start and the end of a control plane.
func run(ctx context.Context) (err error) {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil { // the commands name files as seen from there
		return err
	}
	dir, err := os.MkdirTemp("", "jobtree-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("Starting a control plane for the demo alone: etcd, kube-apiserver, kube-controller-manager and")
	fmt.Println("jobtree-scheduler are the real ones; kwok plays the kubelets of 16 nodes with 8 GPUs each.")
	started := time.Now()
	c, err := controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Fleet: filepath.Join("manifests", "samples", "fleet.yaml"), Scheduler: true, Kwok: true,
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	fmt.Printf("It was ready after %.0f seconds.\n", time.Since(started).Seconds())
	s := &stage{c: c, bin: filepath.Join(root, "bin"), out: os.Stdout, colours: printers.AllowsColorOutput(os.Stdout),
		close: func() {}}
	defer func() { s.close() }()
	if err := s.play(ctx); err != nil {
		return fmt.Errorf("%w\n\nThe scheduler's log ends with:\n%s", err, c.Scheduler.LogTail(10))
	}
	fmt.Printf("\nAll of it is as it should be: %d checks passed. The demo took %.0f seconds and leaves nothing behind.\n",
		s.checks, time.Since(started).Seconds())
	fmt.Println("Try it yourself: `make up` leaves the same control plane running.")
	return nil
}
