package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	jobtree "github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plugins"
)

// argsOf returns the plugin's arguments. They are the same in all profiles, since one book serves them all.
func argsOf(profiles []schedulerconfig.KubeSchedulerProfile) (*jobtree.Args, error) {
	var args *jobtree.Args
	for i := range profiles {
		of, err := plugins.ParseArgs(rawArgs(&profiles[i]))
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", profiles[i].SchedulerName, err)
		}
		if args != nil && !equality.Semantic.DeepEqual(args, of) {
			return nil, fmt.Errorf("profiles %s and %s have different arguments for plugin %s: it decides for all profiles together, "+
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
