// Command demo shows jobtree at work: `make demo`. It starts a control plane of its own with the sample fleet, submits
// the samples, shows what happens to them as it happens, and checks that it is what should happen. It exits with code 1
// if anything is not as it should be, and leaves nothing behind. With -page it then serves the page of the dashboard on
// that fleet until somebody presses Ctrl-C. With -images it writes pictures of it for README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// limit is the longest that the demo may take; it takes about a third of that.
const limit = 2 * time.Minute

func main() {
	page := flag.Bool("page", false, "serve the page of the dashboard on the fleet at the end, until Ctrl-C is pressed")
	images := flag.String("images", "", "directory to write fleet.svg and time.svg to, as they are before the draw")
	flag.Parse()
	runtime.LockOSThread() // children are killed when the thread that started them ends
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *page, *images)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		os.Exit(1)
	}
}

// run plays the demo between the start and the end of a control plane.
func run(ctx context.Context, page bool, images string) (err error) {
	root, err := controlplane.Root()
	if err == nil && images != "" {
		images, err = filepath.Abs(images)
	}
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
	config, err := withLead(dir)
	if err != nil {
		return err
	}
	playing, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the demo has not ended after %v", limit))
	defer cancel()
	fmt.Println("Starting a control plane for the demo alone: etcd, kube-apiserver, kube-controller-manager and")
	fmt.Println("jobtree-scheduler are the real ones; kwok plays the kubelets of 16 nodes with 8 GPUs each, and of")
	fmt.Println("three that change nothing: a control plane's, one without GPUs, one whose GPUs nobody uses.")
	started := time.Now()
	c, err := controlplane.Start(playing, controlplane.Options{Dir: dir, Config: config,
		Fleet: filepath.Join("manifests", "samples", "fleet.yaml"), Scheduler: true, Kwok: true})
	if err != nil {
		return because(playing, err)
	}
	defer c.Stop()
	fmt.Printf("It was ready after %.0f seconds.\n", time.Since(started).Seconds())
	s := &stage{c: c, bin: filepath.Join(root, "bin"), out: os.Stdout, colours: printers.AllowsColorOutput(os.Stdout),
		close: func() {}, images: images}
	defer func() { s.close() }()
	if err := s.play(playing); err != nil {
		return because(playing, fmt.Errorf("%w\n\nThe scheduler's log ends with:\n%s", err, c.Scheduler.LogTail(10)))
	}
	fmt.Printf("\nAll of it is as it should be: %d checks passed. The demo took %.0f seconds.\n", s.checks,
		time.Since(started).Seconds())
	if page {
		return s.show(ctx)
	}
	fmt.Println("It leaves nothing behind. Try it yourself: `make up` leaves such a control plane running, and")
	fmt.Println("`make demo PAGE=1` shows this one in your browser.")
	return nil
}

// because is why something failed: what ended the demo, of which the rest is only a consequence.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lead is how long after its refusal a Run of the demo may have others cut.
const lead = "12s"

// withLead writes the scheduler's configuration with that lead, and returns its path.
func withLead(dir string) (string, error) {
	sample := filepath.Join("manifests", "samples", "scheduler", "short-lead.yaml")
	text, err := os.ReadFile(sample)
	if err != nil {
		return "", err
	}
	config := strings.Replace(string(text), "reservationLead: 1m", "reservationLead: "+lead, 1)
	if config == string(text) {
		return "", fmt.Errorf("%s has no reservationLead of 1m", sample)
	}
	path := filepath.Join(dir, "config.yaml")
	return path, os.WriteFile(path, []byte(config), 0o600)
}
