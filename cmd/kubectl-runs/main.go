// Command kubectl-runs is the kubectl plugin "kubectl runs". Symbolic links give it other names: kubectl-jobtree makes
// it "kubectl jobtree", and kubectl_complete-runs is the completion of the plugin, as kubectl looks for it.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/davidlangworthy/jobtree/pkg/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)  // who interrupts a second time does not wait for anything
	klog.SetLogger(klog.Logger{}) // commands say what went wrong; what the client library tries again nobody need read
	args, program := os.Args[1:], filepath.Base(os.Args[0])
	if strings.HasPrefix(program, "kubectl_complete-") {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := cli.NewCommand(streams)
	if name, isPlugin := strings.CutPrefix(program, "kubectl-"); isPlugin {
		root.Annotations[cobra.CommandDisplayNameAnnotation] = "kubectl " + name
	}
	os.Exit(cli.Execute(ctx, root, args, streams.ErrOut))
}
