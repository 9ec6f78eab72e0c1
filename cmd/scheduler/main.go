// The jobtree scheduler: kube-scheduler with the Jobtree plugin and its controllers in it.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/plugins"
)

func main() { os.Exit(cli.Run(newCommand())) }

// newCommand returns the scheduler's command: kube-scheduler's own flags and configuration, and one plugin more.
func newCommand() *cobra.Command {
	o := options.NewOptions()
	command := &cobra.Command{
		Use:          "jobtree-scheduler",
		Short:        "A secondary Kubernetes scheduler for GPU fleets shared by many teams",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.ComponentGlobalsRegistry.Set()
		},
		RunE: func(*cobra.Command, []string) error {
			verflag.PrintAndExitIfRequested()
			gates := o.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
			if err := logsapi.ValidateAndApply(o.Logs, gates); err != nil {
				return err
			}
			return run(genericapiserver.SetupSignalContext(), o)
		},
	}
	verflag.AddFlags(o.Flags.FlagSet("global"))
	globalflag.AddGlobalFlags(o.Flags.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, flags := range o.Flags.FlagSets {
		command.Flags().AddFlagSet(flags)
	}
	cliflag.SetUsageAndHelpFunc(command, *o.Flags, 120)
	return command
}

// run schedules until the context ends or the leader's lease is lost.
func run(ctx context.Context, o *options.Options) error {
	c, leads, err := configure(ctx, o)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	args, err := argsOf(c.ComponentConfig.Profiles)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	parts, err := compose(c, args, leads)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	scheduler, err := newScheduler(ctx, o, c, runtime.Registry{plugins.Name: parts.plugin})
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	plugins.TellOfRuns(scheduler, parts.controllers.EventRecorder())
	plugins.KeepPods(scheduler)
	// Only the leader asks for pods to schedule, so the first request is when this process begins to decide.
	leading := make(chan struct{})
	next, lead := scheduler.NextEntity, sync.OnceFunc(func() { close(leading) })
	scheduler.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		lead()
		return next(logger)
	}
	plugins.AskBetween(ctx, scheduler, parts.book, clock.RealClock{})
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		if err := parts.controllers.Start(ctx, leading); err != nil {
			klog.FromContext(ctx).Error(err, "This process ends")
			end()
		}
	}()
	defer utilruntime.HandleCrash()
	completed := c.Complete()
	return app.Run(ctx, &completed, scheduler)
}
