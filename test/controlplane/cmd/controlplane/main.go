// Command controlplane leaves a local control plane running, or ends it: `make up` and `make down`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

const usage = `Usage: controlplane [flags] up|down

Flags:
`

// sampleFleet is the fleet for which the samples' Budgets pay.
const sampleFleet = "manifests/samples/fleet.yaml"

func main() {
	o := controlplane.Options{Scheduler: true, Kwok: true, Detached: true}
	flag.StringVar(&o.Dir, "dir", ".local", "state `directory`")
	flag.StringVar(&o.BinDir, "bin", "", "`directory` of the binaries (default bin of the checkout)")
	flag.StringVar(&o.Fleet, "fleet", sampleFleet, "YAML `file` of Nodes, or empty for none")
	flag.StringVar(&o.Config, "config", "", "KubeSchedulerConfiguration `file` (default manifests/scheduler/config.yaml)")
	flag.BoolVar(&o.JobSet, "jobset", false, "start the controller of JobSets too")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.Fleet == "empty" {
		o.Fleet = ""
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch command := flag.Arg(0); {
	case flag.NArg() == 1 && command == "up":
		err = up(ctx, o)
	case flag.NArg() == 1 && command == "down":
		err = down(o.Dir)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func up(ctx context.Context, o controlplane.Options) error {
	before := controlplane.Running(o.Dir)
	c, err := controlplane.Start(ctx, o)
	if err != nil {
		return fmt.Errorf("%w\n`make down` ends what has started", err)
	}
	after := controlplane.Running(o.Dir)
	switch {
	case len(before) == 0:
		fmt.Printf("The control plane is ready: %s\n", strings.Join(after, ", "))
	case len(before) == len(after):
		fmt.Println("The control plane was running already; its processes are as they were.")
	default:
		fmt.Printf("The control plane was running in part; it is ready again: %s\n", strings.Join(after, ", "))
	}
	fmt.Printf(`
  export KUBECONFIG=$PWD/%s PATH=$PWD/bin:$PATH
  kubectl get nodes
%s
Logs are in %s. End it with: make down
`, relative(c.Kubeconfig), forSamples(o.Fleet), relative(filepath.Join(o.Dir, "logs")))
	return nil
}

// forSamples is what else may be tried on a fleet: the samples, where there are nodes for them.
func forSamples(fleet string) string {
	if fleet != sampleFleet {
		return ""
	}
	return `  kubectl apply -f manifests/samples/namespaces.yaml -f manifests/samples/budgets.yaml
  kubectl runs submit -f manifests/samples/runs
`
}

func down(dir string) error {
	killed, err := controlplane.Down(dir)
	if err != nil {
		return err
	}
	if len(killed) == 0 {
		fmt.Println("Nothing was running.")
		return nil
	}
	fmt.Println("Ended:", strings.Join(killed, ", "))
	return nil
}

// relative is the path as seen from the working directory.
func relative(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if r, err := filepath.Rel(wd, path); err == nil {
		return r
	}
	return path
}
