package main

import (
	"context"
	"errors"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/davidlangworthy/jobtree/pkg/fence"
)

// configure reads the configuration as kube-scheduler's own command does, if all of its profiles enable the plugin and
// none preempts. Clients that are made of it from then on write only while this process leads, and so does the
// scheduler's; the election's lock, and what writes kube-scheduler's own events, are made already. It returns whether
// this process leads.
func configure(ctx context.Context, o *options.Options) (*config.Config, func() bool, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, nil, err
	}
	o.ComponentConfig = defaults
	if errs := o.Validate(); len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	profiles, err := profilesOf(o, klog.FromContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	if err := enabled(profiles); err != nil {
		return nil, nil, err
	}
	if err := preempts(profiles); err != nil {
		return nil, nil, err
	}
	if o.InformerName, err = cache.NewInformerName("jobtree-scheduler"); err != nil {
		return nil, nil, err
	}
	c, err := o.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	leads := watchLeadership(c.LeaderElection)
	c.KubeConfig = fence.Around(c.KubeConfig, leads)
	if c.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(c.KubeConfig, "scheduler")); err != nil {
		return nil, nil, err
	}
	return c, leads, nil
}

// newScheduler makes the scheduler as kube-scheduler's own command does, with plugins of ours.
func newScheduler(ctx context.Context, o *options.Options, c *config.Config,
	plugins frameworkruntime.Registry) (*scheduler.Scheduler, error) {
	bindFirst(c.ComponentConfig.Profiles)
	var profiles []schedulerconfig.KubeSchedulerProfile // with the defaults filled in
	s, err := scheduler.New(ctx, c.Client, c.InformerFactory, c.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return c.EventBroadcaster.NewRecorder(name) },
		scheduler.WithComponentConfigVersion(c.ComponentConfig.APIVersion),
		scheduler.WithKubeConfig(c.KubeConfig),
		scheduler.WithProfiles(c.ComponentConfig.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.ComponentConfig.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins),
		scheduler.WithPodMaxBackoffSeconds(c.ComponentConfig.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(c.ComponentConfig.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(c.PodMaxInUnschedulablePodsDuration),
		scheduler.WithExtenders(c.ComponentConfig.Extenders...),
		scheduler.WithParallelism(c.ComponentConfig.Parallelism),
		scheduler.WithBuildFrameworkCapturer(func(profile schedulerconfig.KubeSchedulerProfile) {
			profiles = append(profiles, profile)
		}),
	)
	if err != nil {
		return nil, err
	}
	return s, options.LogOrWriteConfig(klog.FromContext(ctx), o.WriteConfigTo, &c.ComponentConfig, profiles)
}
