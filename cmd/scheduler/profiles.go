package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	jobtree "github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plugins"
)

// profilesOf returns the profiles of a configuration as they are when it is read, before kube-scheduler's own checks.
func profilesOf(o *options.Options, logger klog.Logger) ([]schedulerconfig.KubeSchedulerProfile, error) {
	if o.ConfigFile == "" {
		return o.ComponentConfig.Profiles, nil // there is one by default
	}
	c, err := options.LoadConfigFromFile(logger, o.ConfigFile)
	if err != nil {
		return nil, err
	}
	return c.Profiles, nil
}

// enabled fails when a profile does not enable the plugin: its pods would go where kube-scheduler has them go, past the
// book.
func enabled(profiles []schedulerconfig.KubeSchedulerProfile) error {
	is := func(p schedulerconfig.Plugin) bool { return p.Name == plugins.Name }
	for i := range profiles {
		of := profiles[i].Plugins
		if of == nil || !slices.ContainsFunc(of.MultiPoint.Enabled, is) && !slices.Contains(of.Names(), plugins.Name) {
			return fmt.Errorf("profile %s does not enable plugin %s: in the file that --config names, add %s to its "+
				"plugins.multiPoint.enabled "+
				"and PrioritySort to its plugins.queueSort.disabled, as manifests/scheduler/config.yaml has it; or "+
				"remove the profile",
				profiles[i].SchedulerName, plugins.Name, plugins.Name)
		}
	}
	return nil
}

// preempts fails when a profile has kube-scheduler's own preemption on: it would end pods for others of higher
// priority, which no rule of the book's allows.
func preempts(profiles []schedulerconfig.KubeSchedulerProfile) error {
	const plugin = names.DefaultPreemption
	in := func(set []schedulerconfig.Plugin, of ...string) bool {
		return slices.ContainsFunc(set, func(p schedulerconfig.Plugin) bool { return slices.Contains(of, p.Name) })
	}
	for i := range profiles {
		of := profiles[i].Plugins
		if in(of.PostFilter.Enabled, plugin) ||
			in(of.MultiPoint.Enabled, plugin) && !in(of.PostFilter.Disabled, plugin, "*") {
			return fmt.Errorf("profile %s has plugin %s on, which would end pods for others of higher priority, outside the "+
				"budgets and without a draw or a notice: in the file that --config names, add %s to its "+
				"plugins.postFilter.disabled, and to no list of what is enabled, as manifests/scheduler/config.yaml has it",
				profiles[i].SchedulerName, plugin, plugin)
		}
	}
	return nil
}

// bindFirst has the plugin be asked to bind pods before kube-scheduler's own, which binds any.
func bindFirst(profiles []schedulerconfig.KubeSchedulerProfile) {
	for i := range profiles {
		bind := &profiles[i].Plugins.Bind
		others := slices.DeleteFunc(slices.Clone(bind.Enabled), func(p schedulerconfig.Plugin) bool {
			return p.Name == plugins.Name
		})
		bind.Enabled = slices.Insert(others, 0, schedulerconfig.Plugin{Name: plugins.Name})
	}
}

// argsOf returns the plugin's arguments. They are the same in all profiles, since one book serves them all.
func argsOf(profiles []schedulerconfig.KubeSchedulerProfile) (*jobtree.Args, error) {
	var args *jobtree.Args
	for i := range profiles {
		of, err := plugins.ParseArgs(rawArgs(&profiles[i]))
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", profiles[i].SchedulerName, err)
		}
		if args != nil && !equality.Semantic.DeepEqual(args, of) {
			return nil, fmt.Errorf("profiles %s and %s have different arguments for plugin %s: it decides for all "+
				"profiles together, "+
				"so give them the same pluginConfig", profiles[0].SchedulerName, profiles[i].SchedulerName, plugins.Name)
		}
		args = of
	}
	return args, nil
}

// rawArgs returns what a profile says of the plugin's arguments; nil for nothing.
func rawArgs(profile *schedulerconfig.KubeSchedulerProfile) runtime.Object {
	for _, c := range profile.PluginConfig {
		if c.Name == plugins.Name {
			return c.Args
		}
	}
	return nil
}
