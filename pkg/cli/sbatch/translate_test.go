package sbatch

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// script is a batch script of some directives.
func script(directives ...string) string {
	out := "#!/bin/bash\n"
	for _, d := range directives {
		out += "#SBATCH " + d + "\n"
	}
	return out
}

// with are choices for scripts that leave their owner and GPU type out.
var with = Choices{Owner: "org:ai:rai", GPUType: "H100-80GB", Image: "train:1.0", Name: "job"}

// translate parses and translates a script.
func translate(text string, c Choices) (*rqv1.Run, []Note, error) {
	s, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	return Translate(s, c)
}

// mustTranslate is translate for scripts that are in order.
func mustTranslate(t *testing.T, text string, c Choices) (*rqv1.Run, string) {
	t.Helper()
	run, notes, err := translate(text, c)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all strings.Builder
	for _, n := range notes {
		all.WriteString(n.String() + "\n")
	}
	return run, all.String()
}

// asJSON is a value as it is written.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGPUs(t *testing.T) {
	for directives, want := range map[string]string{
		"--gpus-per-node=8":                            "total 8 pod 8",
		"-N 4 --gpus-per-node=8":                       "total 32 pod 8",
		"-N4 --gres=gpu:h100:8":                        "total 32 pod 8",
		"--nodes 2 --gres=gpu":                         "total 2 pod 1",
		"-N 2 --gres=gres/gpu:4,nvme:1":                "total 8 pod 4",
		"--gpus=16":                                    "total 16",
		"-G h100:16 --nodes=2":                         "total 16 pod 8",
		"--gpus=16 --gpus-per-node=4":                  "total 16 pod 4",
		"--gpus=16 --gpus-per-node=4 -N 4":             "total 16 pod 4",
		"--gpus=16 --gpus-per-node=4 -N 2-4":           "total 16 pod 4",
		"--gpus=16 -N 1-4":                             "total 16",
		"-N 2-4 --gpus-per-node=8":                     "total 32 pod 8 from 16 to 32 by 8",
		"--nodes=3-3 --gpus-per-node=8":                "total 24 pod 8",
		"-n 8 --gpus-per-task=1":                       "total 8",
		"-n 8 --gpus-per-task=1 -N 2":                  "total 8 pod 4",
		"-n 5 --gpus-per-task=2":                       "total 10 pod 2",
		"-N 2 --ntasks-per-node=4 --gpus-per-task=2":   "total 16 pod 8",
		"-N 2 --gpus-per-task=2":                       "total 4 pod 2",
		"--gpus=8 --gpus-per-task=2":                   "total 8 pod 2",
		"-n 16 --ntasks-per-node=8 --gpus-per-node=8":  "total 16 pod 8",
		"-n 16 --tasks-per-node=8 --gres=gpu:a100:4":   "total 8 pod 4",
		"-n 4 --gres=gpu:4":                            "total 4 pod 4",
		"--gpus=0 --gpus-per-node=4":                   "total 4 pod 4",
		"--gpus-per-node=2\n#SBATCH --gpus-per-node=4": "total 4 pod 4",
		"--gpus-per-n=4":                               "total 4 pod 4", // as much of a name as tells it
	} {
		run, _ := mustTranslate(t, script(directives), with)
		got := "total " + asJSON(t, run.Spec.Resources.TotalGPUs)
		if p := run.Spec.Resources.GPUsPerPod; p != nil {
			got += " pod " + asJSON(t, *p)
		}
		if m := run.Spec.Malleable; m != nil {
			got += " from " + asJSON(t, m.MinTotalGPUs) + " to " + asJSON(t, m.MaxTotalGPUs) + " by " + asJSON(t, m.StepGPUs)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", directives, diff)
		}
	}
}

func TestTime(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"90": 90 * time.Minute, "90:30": 90*time.Minute + 30*time.Second, "1:02:03": 3723 * time.Second,
		"2-3":    51 * time.Hour,
		"2-3:04": 51*time.Hour + 4*time.Minute, "1-00:00:05": 24*time.Hour + 5*time.Second, "0": 0, "UNLIMITED": 0,
		"infinite": 0, "0:0:0": 0, "00:90": 90 * time.Second,
	} {
		run, _ := mustTranslate(t, script("--gpus=1", "-t "+value), with)
		if got := run.Spec.MaxDuration(); got != want {
			t.Errorf("--time=%s: got %v, want %v", value, got, want)
		}
	}
	for _, value := range []string{"", "x", "1:2:3:4", "-5", "1-", "1-2:3:4:5", "1h", "5:", "1.5", "99999999-0",
		"41667-0"} {
		if _, _, err := translate(script("--gpus=1", "--time="+value), with); err == nil {
			t.Errorf("--time=%s is taken", value)
		}
	}
}

func TestRequests(t *testing.T) {
	for directives, want := range map[string]string{
		"--gpus-per-node=8 --mem=64G":                                       `{"memory":"64Gi"}`,
		"--gpus-per-node=8 --mem=64000":                                     `{"memory":"64000Mi"}`,
		"--gpus-per-node=8 --mem=1tb":                                       `{"memory":"1Ti"}`,
		"--gpus-per-node=8 --mem-per-gpu=16G":                               `{"memory":"128Gi"}`,
		"--gpus-per-node=8 --cpus-per-task=12":                              `{"cpu":"12"}`,
		"--gpus-per-node=8 --ntasks-per-node=8 -c 12":                       `{"cpu":"96"}`,
		"--gpus-per-node=8 --cpus-per-gpu=12 --mem-per-cpu=2G":              `{"cpu":"96","memory":"192Gi"}`,
		"-N 2 -n 16 --gpus-per-node=8 --cpus-per-task=3":                    `{"cpu":"24"}`,
		"-N 2 -n 16 --gpus-per-task=1 --cpus-per-task=3 --mem-per-cpu=512M": `{"cpu":"24","memory":"12Gi"}`,
		"--gpus=8 --mem=0":                                                  `null`,
		"--gpus=8 --mem-per-gpu=4G":                                         `null`, // nothing tells how many a pod has
	} {
		run, _ := mustTranslate(t, script(directives)+"train\n", with)
		got := run.Spec.Template.Spec.Containers[0].Resources.Requests
		if diff := cmp.Diff(want, asJSON(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", directives, diff)
		}
	}
}

// TestFields looks at the fields that one directive or choice makes.
func TestFields(t *testing.T) {
	for name, c := range map[string]struct {
		directives string
		choices    Choices
		want       string
	}{
		"owner and type of the script": {"-A rai --gres=gpu:h100:4", Choices{Image: "i", Name: "job"},
			`{"owner":"rai","resources":{"gpuType":"h100","totalGPUs":4,"gpusPerPod":4}}`},
		"one switch": {"-N 2 --gpus-per-node=8 --switches=1", with, `{"owner":"org:ai:rai","resources":{"gpuType":` +
			`"H100-80GB","totalGPUs":16,"gpusPerPod":8},"locality":{"groupGPUs":16}}`},
		"two switches": {"-N 4 --gpus-per-node=8 --switches=2@1:00", with, `{"owner":"org:ai:rai","resources":{"gpuType":` +
			`"H100-80GB","totalGPUs":32,"gpusPerPod":8},"locality":{"groupGPUs":16}}`},
		"one switch, of a range": {"-N 2-3 --gpus-per-node=8 --switches=1", with, `{"owner":"org:ai:rai","resources":{` +
			`"gpuType":"H100-80GB","totalGPUs":24,"gpusPerPod":8},"locality":{"groupGPUs":8,"allowCrossGroupSpread":false},` +
			`"malleable":{"minTotalGPUs":16,"maxTotalGPUs":24,"stepGPUs":8}}`},
		"held": {"-HG4", with, `{"owner":"org:ai:rai","resources":{"gpuType":"H100-80GB","totalGPUs":4},"suspend":true}`},
		"what only flags say": {"-G4 --time=60 --requeue", Choices{Owner: "a:b",
			GPUType: "X", Name: "job", PriorityClass: "high",
			Checkpoint: 30 * time.Minute}, `{"owner":"a:b","resources":{"gpuType":"X","totalGPUs":4},"runtime":{"checkpoint":` +
			`"30m0s","maxDuration":"1h0m0s"},"priorityClassName":"high"}`},
	} {
		run, _ := mustTranslate(t, script(c.directives), c.choices)
		run.Spec.Template = nil
		if diff := cmp.Diff(c.want, asJSON(t, run.Spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNames(t *testing.T) {
	for job, want := range map[string]string{
		"train": "train", "Train_LLama.7B": "train-llama-7b", "7b": "run-7b", "--x--": "x", "a b": "a-b",
		strings.Repeat("a", 51) + "-b": strings.Repeat("a", 51), "": "", "ü": "",
	} {
		if got := nameOf(job); got != want {
			t.Errorf("%q is named %q, want %q", job, got, want)
		}
	}
	if got := NameOfFile("/jobs/train.v2.sbatch"); got != "train.v2" {
		t.Errorf("the file gives the name %q", got)
	}
}

// TestContainer looks at what the script's commands become.
func TestContainer(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"the commands": {"#!/bin/bash\n#SBATCH -G1 --chdir=/work\n\n# what follows\nset -e\n# kept\necho \"$RANK\" " +
			"$(hostname)\n",
			`{"name":"main","image":"train:1.0","command":["bash","-c","set -e\n# kept\necho \"$RANK\" $(hostname)\n"],` +
				`"workingDir":"/work","resources":{}}`},
		"what Kubernetes reads": {"#!/bin/bash\n#SBATCH -G1\necho $$ $(RANK) $x\n",
			`{"name":"main","image":"train:1.0","command":["bash","-c","echo $$$$ $$(RANK) $x\n"],"resources":{}}`},
		"another program": {"#!/usr/bin/env -S python3 -u\n#SBATCH -G1\nprint(1)\n",
			`{"name":"main","image":"train:1.0","command":["python3","-u","-c","print(1)\n"],"resources":{}}`},
		"the end of the options": {"#!/bin/bash -\n#SBATCH -G1\ntrain\n",
			`{"name":"main","image":"train:1.0","command":["bash","-c","train\n"],"resources":{}}`},
		"no commands": {script("-G1"), `{"name":"main","image":"train:1.0","resources":{}}`},
	} {
		run, _ := mustTranslate(t, c.text, with)
		if diff := cmp.Diff(c.want, asJSON(t, run.Spec.Template.Spec.Containers[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	bare := with
	bare.Image = ""
	run, told := mustTranslate(t, script("-G1 --mem=1G"), bare)
	if run.Spec.Template != (*corev1.PodTemplateSpec)(nil) || !strings.Contains(told, "do nothing") ||
		!strings.Contains(told, "line 2: --mem=1G: it is not translated") {
		t.Errorf("a script without commands and image: template %v, told %s", run.Spec.Template, told)
	}
}
