package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// jobtreeProfile is a profile that enables the plugin, with the given lines of its arguments.
func jobtreeProfile(name string, args ...string) string {
	profile := `
- schedulerName: ` + name + `
  plugins:
    multiPoint: {enabled: [{name: Jobtree}]}
    queueSort: {disabled: [{name: PrioritySort}]}
    postFilter: {disabled: [{name: DefaultPreemption}]}
  pluginConfig:
  - name: Jobtree
    args:
      apiVersion: rq.davidlangworthy.io/v1
      kind: JobtreeArgs
`
	for _, arg := range args {
		profile += "      " + arg + "\n"
	}
	return profile
}

// configFile returns a file that holds a configuration with profiles.
func configFile(t *testing.T, profiles ...string) string {
	t.Helper()
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	if len(profiles) > 0 {
		text += "profiles:" + strings.Join(profiles, "")
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// withProfiles returns a configuration with profiles, as it is read.
func withProfiles(t *testing.T, profiles ...string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	c, err := options.LoadConfigFromFile(klog.Background(), configFile(t, profiles...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestArgsOfProfiles(t *testing.T) {
	for name, test := range map[string]struct {
		profiles []string
		fabric   string
		problem  string
	}{
		"one": {[]string{jobtreeProfile("a", "fabricLevel: region")}, "region", ""},
		"same": {[]string{jobtreeProfile("a", "fabricLevel: region"), jobtreeProfile("b", "fabricLevel: region")}, "region",
			""},
		"different": {[]string{jobtreeProfile("a"), jobtreeProfile("b", "fabricLevel: region")}, "",
			"profiles a and b have different arguments for plugin Jobtree: it decides for all profiles together, so give them " +
				"the same pluginConfig"},
		"wrong": {[]string{jobtreeProfile("a"), jobtreeProfile("b", "fabricLevel: nowhere")}, "", "profile b: JobtreeArgs:"},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := argsOf(withProfiles(t, test.profiles...).Profiles)
			switch {
			case test.problem != "":
				if err == nil || !strings.HasPrefix(err.Error(), test.problem) {
					t.Errorf("got %v, want %s", err, test.problem)
				}
			case err != nil || args.FabricLevel != test.fabric:
				t.Errorf("got %+v, %v", args, err)
			}
		})
	}
}

// TestPreemptionIsRefused starts the scheduler with profiles in which kube-scheduler's own preemption is on.
func TestPreemptionIsRefused(t *testing.T) {
	profile := func(plugins string) string {
		return "\n- {schedulerName: a, plugins: {" + plugins + "}}"
	}
	const ours = "multiPoint: {enabled: [{name: Jobtree}]}, queueSort: {disabled: [{name: PrioritySort}]}"
	for name, test := range map[string]struct {
		profiles []string
		on       string // the profile in which it is on
	}{
		"left on":   {[]string{profile(ours)}, "a"},
		"asked for": {[]string{profile(ours + ", postFilter: {enabled: [{name: DefaultPreemption}]}")}, "a"},
		"asked for after all": {[]string{profile(ours +
			", postFilter: {enabled: [{name: DefaultPreemption}], disabled: [{name: '*'}]}")}, "a"},
		"at all points": {[]string{profile("multiPoint: {enabled: [{name: Jobtree}, {name: DefaultPreemption}], " +
			"disabled: [{name: '*'}]}")}, "a"},
		"in the second": {[]string{jobtreeProfile("b"), profile(ours)}, "a"},
		"off":           {[]string{jobtreeProfile("b")}, ""},
		"all are off":   {[]string{profile(ours + ", postFilter: {disabled: [{name: '*'}]}")}, ""},
		"off at all points": {[]string{profile("multiPoint: {enabled: [{name: Jobtree}], " +
			"disabled: [{name: DefaultPreemption}]}")}, ""},
		"all are off at all points": {[]string{profile("multiPoint: {enabled: [{name: Jobtree}], " +
			"disabled: [{name: '*'}]}")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if test.on != "" {
				want = "starting: profile " + test.on + " has plugin DefaultPreemption on, which would end pods for others of " +
					"higher priority, outside the budgets and without a draw or a notice: in the file that --config names, " +
					"add DefaultPreemption to its plugins.postFilter.disabled, and to no list of what is enabled, as " +
					"manifests/scheduler/config.yaml has it"
			}
			starts(t, test.profiles, preempts, want)
		})
	}
}

// starts asserts that some profiles pass a check or, where it is said how they are refused, that the scheduler does not
// start with them and says so.
func starts(t *testing.T, profiles []string, check func([]schedulerconfig.KubeSchedulerProfile) error, refused string) {
	t.Helper()
	o := options.NewOptions()
	o.ConfigFile = configFile(t, profiles...)
	read, err := profilesOf(o, klog.Background())
	switch {
	case err != nil:
		t.Fatal(err)
	case refused == "":
		if err := check(read); err != nil {
			t.Error(err)
		}
	default:
		if err := run(t.Context(), o); err == nil || err.Error() != refused {
			t.Errorf("got %v, want %s", err, refused)
		}
	}
}

// TestTheConfigurationsInTheTree are ones that the scheduler starts with.
func TestTheConfigurationsInTheTree(t *testing.T) {
	for _, file := range []string{"manifests/scheduler/config.yaml", "manifests/samples/scheduler/short-lead.yaml",
		"manifests/samples/tpu/config.yaml", "manifests/samples/hotswap/config.yaml",
		"test/perf/workloads/scheduler-config.yaml"} {
		o := options.NewOptions()
		o.ConfigFile = filepath.Join("..", "..", file)
		profiles, err := profilesOf(o, klog.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := cmp.Or(enabled(profiles), preempts(profiles)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestEveryProfileEnablesThePlugin starts the scheduler with profiles that do not.
func TestEveryProfileEnablesThePlugin(t *testing.T) {
	const fix = ": in the file that --config names, add Jobtree to its plugins.multiPoint.enabled and " +
		"PrioritySort to its " +
		"plugins.queueSort.disabled, as manifests/scheduler/config.yaml has it; or remove the profile"
	without, atPoints := "\n- schedulerName: other",
		"\n- {schedulerName: a, plugins: {filter: {enabled: [{name: Jobtree}]}}}"
	for name, test := range map[string]struct {
		profiles []string
		lacks    string
	}{
		"no profile":           {nil, "default-scheduler"},
		"one that does not":    {[]string{without}, "other"},
		"the second does not":  {[]string{jobtreeProfile("a"), without}, "other"},
		"the first does not":   {[]string{without, jobtreeProfile("a")}, "other"},
		"other plugins only":   {[]string{without + "\n  plugins: {multiPoint: {enabled: [{name: Another}]}}"}, "other"},
		"both do":              {[]string{jobtreeProfile("a"), jobtreeProfile("b")}, ""},
		"one at single points": {[]string{atPoints}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if test.lacks != "" {
				want = "starting: profile " + test.lacks + " does not enable plugin Jobtree" + fix
			}
			starts(t, test.profiles, enabled, want)
		})
	}
	o := options.NewOptions()
	if err := run(t.Context(), o); err == nil || !strings.HasSuffix(err.Error(), fix) {
		t.Errorf("without a configuration: %v", err)
	}
}
