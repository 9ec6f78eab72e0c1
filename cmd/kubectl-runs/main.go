// Command kubectl-runs is the kubectl plugin "kubectl runs". Under the name kubectl_complete-runs (a symbolic link
// does) it is the completion of that plugin, as kubectl looks for it.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/davidlangworthy/jobtree/pkg/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "kubectl_complete-runs" {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.Execute(ctx, cli.NewCommand(streams), args, streams.ErrOut))
}
