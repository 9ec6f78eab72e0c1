package docs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// reader plays the documentation of one file.
type reader struct {
	t       *testing.T
	name    string
	dir     string // where the commands run; it has the checkout's manifests
	plane   *controlplane.ControlPlane
	environ []string
	// kubeconfig is that of who runs the next commands.
	kubeconfig string
}

// playing has a place for each page that is played at a time. With more of them, beside the scenarios of another
// package, what a page waits for would take longer than it does for a reader.
var playing = make(chan struct{}, 4)

func TestDocs(t *testing.T) {
	root := checkout(t)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documentation: %v", err)
	}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := parse(string(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if slices.ContainsFunc(blocks, func(b block) bool { return b.language == "yaml" || b.runs() }) {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // each has a control plane for itself
				playing <- struct{}{}
				defer func() { <-playing }()
				play(t, root, name, personOf(string(data)), blocks)
			})
		}
	}
}

// play does in order what the blocks of a file say.
func play(t *testing.T, root, name string, as *person, blocks []block) {
	ctx, with := t.Context(), upOf(blocks)
	plane := takePlane(t, with.jobSets)
	config := with.config
	if config == "" {
		config = "manifests/scheduler/config.yaml"
	}
	plane.Configure(patient(t, filepath.Join(root, config)))
	if err := plane.StartFleet(ctx, filepath.Join(root, with.fleet)); err != nil {
		t.Fatal(err)
	}
	if err := plane.StartLeader(ctx); err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, name: name, dir: t.TempDir(), plane: plane, environ: append(os.Environ(), "TZ=UTC",
		"PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))}
	people := plane.Kubeconfig
	if as != nil {
		people = as.kubeconfig(t, plane.Kubeconfig)
	}
	if err := os.Symlink(filepath.Join(root, "manifests"), filepath.Join(r.dir, "manifests")); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		r.kubeconfig = people
		if b.byAdmin() {
			r.kubeconfig = plane.Kubeconfig
		}
		switch {
		case b.language == "yaml":
			r.yaml(ctx, b)
		case b.language == "bash" && b.runs():
			if out, err := r.bash(ctx, b.text); err != nil {
				t.Fatalf("%s:%d: %v\n%s", name, b.line, err, out)
			}
		case b.language == "console" && b.runs():
			for _, s := range b.session() {
				out, err := r.bash(ctx, s.command)
				if err != nil {
					t.Fatalf("%s:%d: %v\n%s", name, s.line, err, out)
				}
				if diff := cmp.Diff(canonical(s.output), canonical(out)); diff != "" {
					t.Errorf("%s:%d: %s prints something else (-the document +the command):\n%s", name, s.line, s.command, diff)
				}
			}
		}
	}
}

// patient copies a scheduler's configuration, and has nodes count as lost for silence after minutes where it names no
// time: a machine that is busy may keep kwok from renewing its nodes' leases.
func patient(t *testing.T, from string) string {
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	plugin := config["profiles"].([]any)[0].(map[string]any)["pluginConfig"].([]any)[0].(map[string]any)
	if args := plugin["args"].(map[string]any); args["nodeLossGrace"] == nil {
		args["nodeLossGrace"] = "2m"
	}
	if data, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hung is how long the commands of one block take at most. A page takes as long as it waits for, on a busy machine.
const hung = 10 * time.Minute

// bash runs commands and returns all that they print.
func (r *reader) bash(ctx context.Context, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, hung)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &out, &out
	cmd.Env = append(slices.Clone(r.environ), "KUBECONFIG="+r.kubeconfig)
	err := cmd.Run()
	return out.String(), err
}

// onlyVersion begins the warning that the API server gives with the only version of PodGroups that there is.
const onlyVersion = "Warning: scheduling.k8s.io/v1beta1 PodGroup is deprecated in "

// yaml has every document of a block checked by whoever reads such documents.
func (r *reader) yaml(ctx context.Context, b block) {
	if name := b.file(); name != "" {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(b.text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	if b.theirs() {
		return
	}
	for document := range strings.SplitSeq(b.text, "\n---\n") {
		if strings.Contains(document, "kind: KubeSchedulerConfiguration") {
			if err := checkArgs(document); err != nil {
				r.t.Errorf("%s:%d: %v", r.name, b.line, err)
			}
			continue
		}
		_, stderr, err := r.plane.KubectlStdin(ctx, strings.NewReader(document), "apply", "--dry-run=server", "-f", "-")
		if err != nil || strings.Contains(strings.ReplaceAll(stderr, onlyVersion, ""), "Warning") {
			r.t.Errorf("%s:%d: %v: %s", r.name, b.line, err, stderr)
		}
	}
}

// checkArgs has the plugin's arguments in a scheduler configuration read as the scheduler reads them.
func checkArgs(document string) error {
	var configuration struct {
		Profiles []struct {
			PluginConfig []struct {
				Name string         `json:"name"`
				Args map[string]any `json:"args"`
			} `json:"pluginConfig"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
		return err
	}
	for _, profile := range configuration.Profiles {
		for _, plugin := range profile.PluginConfig {
			args, err := yaml.Marshal(plugin.Args)
			if err != nil {
				return err
			}
			if _, err := config.Parse(args); err != nil {
				return err
			}
		}
	}
	return nil
}
