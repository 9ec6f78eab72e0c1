package imports

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/sbatch"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

const sample = "../../../manifests/samples/slurm/pretrain.sbatch"

// command runs "kubectl runs import" with a standard input and without any cluster.
func command(t *testing.T, stdin string, args ...string) (out, problems string, err error) {
	t.Helper()
	streams, in, printed, told := genericiooptions.NewTestIOStreams()
	in.WriteString(stdin)
	s := &session.Session{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true)}
	root := &cobra.Command{Use: "kubectl-runs", SilenceErrors: true, SilenceUsage: true}
	s.Flags.AddFlags(root.PersistentFlags())
	root.AddCommand(Command(s))
	root.SetArgs(append([]string{"import"}, args...))
	err = root.ExecuteContext(t.Context())
	return printed.String(), told.String(), err
}

func TestImport(t *testing.T) {
	out, told, err := command(t, "", sample, "--image", "train:1.0", "-n", "rai")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "pretrain", out+"---\n"+told)
	decoded(t, out)
}

// TestFormats has a Run from standard input in JSON, with what flags say.
func TestFormats(t *testing.T) {
	out, told, err := command(t, "#!/bin/bash\n#SBATCH -G4\n", "-", "-o", "json", "--owner", "org:a", "--gpu-type", "X",
		"--checkpoint", "30m", "--priority-class", "high", "--image", "i")
	if err != nil || told != "" {
		t.Fatal(err, told)
	}
	for _, want := range []string{`"name": "sbatch"`, `"owner": "org:a"`, `"gpuType": "X"`, `"checkpoint": "30m0s"`,
		`"priorityClassName": "high"`, `"image": "i"`} {
		if !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
	for _, empty := range []string{"status", "creationTimestamp", "namespace", "{}"} {
		if strings.Contains(out, empty) {
			t.Errorf("%s is in\n%s", empty, out)
		}
	}
	decoded(t, out)
}

func TestWrong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	file := filepath.Join(t.TempDir(), "x.sbatch")
	if err := os.WriteFile(file, []byte("#!/bin/bash\n#SBATCH -N x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"name the batch script, or the file of objects, to import: kubectl runs import FILE": nil,
		"cannot read " + missing + ": no such file":                                          {missing},
		file + ": line 2: --nodes=x: expected a number of nodes":                             {file},
		"standard input: line 1: a batch script begins with":                                 {"-"},
		`--output "table" is not a format of this command; choose`:                           {"-", "-o", "table"},
		"name an image that has the program":                                                 {sample},
	} {
		out, _, err := command(t, "", args...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: got %v and %q, want %s", args, err, out, want)
		}
	}
}

// decoded fails the test unless "kubectl runs submit" takes what was printed.
func decoded(t interface{ Fatalf(string, ...any) }, text string) {
	entries, err := manifest.ReadEntries(context.Background(), []string{manifest.Stdin}, false, strings.NewReader(text))
	if err != nil || len(entries) != 1 || entries[0].Object.GetKind() != "Run" {
		t.Fatalf("%v\n%s", err, text)
	}
}

// TestWhatIsPrintedCanBeSubmitted: whatever a script's commands and directives are, the Run that is printed is read
// again as it was written.
func TestWhatIsPrintedCanBeSubmitted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.String().Draw(rt, "body")
		directives := rapid.SliceOf(rapid.SampledFrom([]string{"-N2", "--gpus-per-node=8", "-n 16", "--mem=1G", "--hold",
			"-t 1-0", "--switches=1", "-N 1-3", "-J 'Ä b'", "-c 2", "--array=1"})).Draw(rt, "directives")
		script, err := sbatch.Parse("#!/bin/bash\n#SBATCH " + strings.Join(directives, " ") + "\n" + body)
		if err != nil {
			return
		}
		run, _, err := sbatch.Translate(script, sbatch.Choices{Owner: "a", GPUType: "X", Image: "i", Name: "job"})
		if err != nil {
			return
		}
		object, err := manifest.Written(run)
		if err != nil {
			rt.Fatal(err)
		}
		for _, format := range []string{"yaml", "json"} {
			flags := genericclioptions.NewPrintFlags("")
			*flags.OutputFormat = format
			printer, err := flags.ToPrinter()
			if err != nil {
				rt.Fatal(err)
			}
			var out strings.Builder
			if err := printer.PrintObj(object, &out); err != nil {
				rt.Fatal(err)
			}
			decoded(rt, out.String())
		}
	})
}

const kueueSample = "../../../manifests/samples/kueue/workloads.yaml"

// TestImportOfKueue prints what was written for Kueue as jobtree schedules it.
func TestImportOfKueue(t *testing.T) {
	out, told, err := command(t, "", kueueSample, "--queue-owner", "team-a=org:ai:rai", "--queue-owner",
		"team-b=org:ai:mm")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "kueue", out+"---\n"+told)
	again, told, err := command(t, out, "-", "--owner", "org:ai:rai")
	if err == nil || !strings.Contains(err.Error(), "no object has label kueue.x-k8s.io/queue-name") {
		t.Errorf("what is printed is no workload of Kueue's any more: %v\n%s%s", err, again, told)
	}
}

// TestImportOfOneFromACluster has what was read from a cluster be applied to another, with what flags say.
func TestImportOfOneFromACluster(t *testing.T) {
	const read = `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "batch/v1", "kind": "Job", "metadata":
		{"name": "train", "uid": "u", "resourceVersion": "7", "generation": 2, "creationTimestamp": "2030-01-01T00:00:00Z",
		"labels": {"kueue.x-k8s.io/queue-name": "q"}, "finalizers": ["kueue.x-k8s.io/managed", "other.example.com/stays"],
		"annotations": {"kueue.x-k8s.io/job-min-parallelism": "2", "kueue.x-k8s.io/unheard-of": "x"}},
		"spec": {"suspend": true, "completionMode": "Indexed", "parallelism": 4, "completions": 4, "selector": {"matchLabels":
		{"batch.kubernetes.io/controller-uid": "u"}}, "template": {"metadata": {"labels": {"job-name": "train",
		"batch.kubernetes.io/controller-uid": "u", "app": "a"}}, "spec": {"schedulerName": "volcano", "containers":
		[{"name": "c"}]}}}, "status": {"active": 1}}]}`
	out, told, err := command(t, read, "-", "--owner", "org:ai:rai", "--gpu-type", "X", "--checkpoint", "30m",
		"--priority-class", "high", "-n", "rai")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "kueue-read", out+"---\n"+told)
}

func TestImportOfKueueWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"JobSet/llm: label kueue.x-k8s.io/queue-name: team-a: nobody is named who pays for what is in this queue: say " +
			"--queue-owner team-a=OWNER, or --owner for all queues": {kueueSample, "--queue-owner", "team-b=org:ai:mm"},
		`--queue-owner team-a=Me: "Me" is not an owner: it must be a path`: {kueueSample, "--queue-owner", "team-a=Me"},
		`--owner "Me" is not an owner`:                                     {kueueSample, "--owner", "Me"},
		"--image is for batch scripts":                                     {kueueSample, "--owner", "a", "--image", "i"},
		"--queue-owner is for workloads of Kueue":                          {sample, "--queue-owner", "a=b"},
	} {
		out, _, err := command(t, "", args...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: got %v and %q, want %s", args, err, out, want)
		}
	}
}
