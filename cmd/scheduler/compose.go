package main

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
	jobtree "github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/pkg/fence"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/plugins"
)

// parts are what a process decides with: of each there is one, however many profiles name the plugin.
type parts struct {
	book        *book.Book
	controllers *controllers.Controllers
	plugin      frameworkruntime.PluginFactory
}

// compose makes what a process decides with. Nothing of it does anything yet.
func compose(c *config.Config, args *jobtree.Args, leads func() bool) (*parts, error) {
	metrics.Register()
	client, err := controllers.NewClient(c.KubeConfig)
	if err != nil {
		return nil, err
	}
	client = fence.Signed(client, writer(c.LeaderElection), leads)
	tells, err := kubernetes.NewForConfig(rest.AddUserAgent(c.KubeConfig, "events"))
	if err != nil {
		return nil, err
	}
	b, clock := book.New(args), clock.RealClock{}
	b.WatchHolds(func() func() {
		start := clock.Now()
		return func() { metrics.BookHeldSeconds.Observe(clock.Since(start).Seconds()) }
	})
	carry, err := controllers.New(controllers.Options{
		Args: args, Book: b, Kube: c.Client, EventsClient: tells, Client: client, Shared: c.InformerFactory,
		Name: c.ComponentConfig.Profiles[0].SchedulerName, Clock: clock, Holds: leads,
	})
	if err != nil {
		return nil, err
	}
	return &parts{book: b, controllers: carry, plugin: plugins.NewFactory(b, client, clock)}, nil
}
