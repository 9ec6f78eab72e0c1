// Command kwok is kwok as it is released, made safe to start where nodes and pods are already there.
//
// What kwok knows of types for its expressions is in maps of the process (github.com/wzshiming/easycel, types.go) that
// nothing guards. It fills them when its first node and its first pod arrive, on a goroutine for each, and dies when
// that happens at once. Here they are full before it starts.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx := signals.SetupSignalContext()
	if err := learnTypes(ctx); err != nil {
		return err
	}
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true // the rest are the command's
	flags.Usage = func() {}
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

// learnTypes matches a node and a pod with a stage that takes neither.
func learnTypes(ctx context.Context) error {
	for _, object := range []any{&corev1.Node{}, &corev1.Pod{}} {
		stage := &internalversion.Stage{Spec: internalversion.StageSpec{
			Selector: &internalversion.StageSelector{MatchLabels: map[string]string{"none": "such"}},
		}}
		stages, err := lifecycle.NewLifecycle([]*internalversion.Stage{stage})
		if err != nil {
			return err
		}
		if _, err := stages.Match(ctx, &lifecycle.Event{Data: object}); err != nil {
			return err
		}
	}
	return nil
}
