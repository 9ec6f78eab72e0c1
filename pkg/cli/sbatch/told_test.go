package sbatch

import (
	"errors"
	"strings"
	"testing"
)

// TestRefused has scripts that are wrong: the error names the line, the directive, and what mends it.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "line 1: a batch script begins with the program that runs it: write #!/bin/bash " +
			"first",
		"#SBATCH -G1\n": "line 1: a batch script begins",
		"#!/bin/tcsh\n": "line 1: #!/bin/tcsh: a script can be given to bash",
		"#!/bin/bash\r\n": "line 1: the line ends as in DOS, which Slurm refuses: convert the script with " +
			"dos2unix",
		"#!/bin/bash\n\x00":            "line 2: there is a zero byte",
		"#!/bin/bash\n\x7f":            "line 2: there is a control character",
		"#!/bin/bash\n\xff":            "line 2: this is no UTF-8 text",
		script("-J 'a b"):              "line 2: #SBATCH -J 'a b: the quote ' has no end: close it",
		script("-G1", "four"):          `line 3: --four: "four" is not an option`,
		script("-G1", "hetjob"):        "line 3: --hetjob: a job of several kinds of nodes is several Runs",
		script("--nodes"):              "line 2: --nodes: the value is missing: write --nodes=VALUE",
		script("-HN"):                  "line 2: --nodes: the value is missing",
		script("-Z"):                   "sbatch has no option -Z: leave it out",
		script("--hold=yes"):           "line 2: --hold=yes: this option has no value: write --hold",
		script("-N x --gpus=1"):        "line 2: --nodes=x: expected a number of nodes",
		script("-N 4-2 -G4"):           "line 2: --nodes=4-2: the most nodes are fewer than the least: write --nodes=2-4",
		script("-G x:y"):               "line 2: --gpus=x:y: expected a number of GPUs",
		script("-G a:1,b:1"):           "line 2: --gpus=a:1,b:1: all GPUs of a Run have one type",
		script("--gres=gpu:a:1,gpu:2"): "GPUs are requested twice",
		"#!/bin/bash\n#PBS -l select=2:ngpus=8\ntrain\n": "line 2: #PBS: directives of PBS and of LSF are not read: " +
			"say what is meant with #SBATCH",
		script("-n 0"): "line 2: --ntasks=0: expected a whole number from 1",
	} {
		refused(t, text, want)
	}
}

// TestContradictory has scripts whose directives ask for what cannot be, or not enough.
func TestContradictory(t *testing.T) {
	for text, want := range map[string]string{
		script("-N 2"): "the script asks for no GPUs, and a Run is made of them: add #SBATCH " +
			"--gpus-per-node=N",
		script("-N 2", "--exclusive"): "line 3: --exclusive: it does not say how many GPUs a node has",
		script("-G10 -N4"): "line 2: --gpus=10: 10 GPUs on 4 nodes are not the same number on each, and the pods of a " +
			"Run are all alike: ask for a multiple",
		script("-G10", "--gpus-per-node=4"): "line 2: --gpus=10: 10 GPUs are no whole nodes of 4 as --gpus-per-node=4 " +
			"(line 3) has it",
		script("-G8", "--gpus-per-node=4", "-N 4"): "line 2: --gpus=8: that makes 8 GPUs, which are 2 nodes of 4 as " +
			"--gpus-per-node=4 (line 3) has it, and --nodes=4 (line 4) says otherwise: leave one of them out",
		script("--gpus-per-node=4", "--gres=gpu:8"): "line 3: --gres=gpu:8: --gpus-per-node=4 (line 2) says 4 GPUs a node: " +
			"leave one of them out",
		script("--gpus-per-node=a:4", "-G b:8"): "has another type",
		script("-n4 -N2 --ntasks-per-node=1 -G2"): "line 2: --ntasks=4: there are more tasks than --nodes=2 (line 2) with " +
			"--ntasks-per-node=1 (line 2) hold, 2",
		script("-n 1", "-N 4 --gpus-per-node=8"): "there are fewer tasks than --nodes=4 (line 3): write --nodes=1",
		script("-n 4 --gpus-per-task=2 -G4"):     "with --ntasks=4 (line 2) that makes 8 GPUs, and --gpus=4 (line 2) says 4",
		script("--gpus-per-task=3 -G4"):          "--gpus=4 (line 2) is no multiple of it",
		script("--gpus-per-task=2 --ntasks-per-node=4 --gres=gpu:4"): "that makes 8 GPUs a node, and --gres=gpu:4 (line 2) " +
			"says 4: leave one of them out",
		script("-N 999999 --gpus-per-node=8"): "that makes 7999992 GPUs, and a Run may have 1000000",
		script("--gpus-per-node=2000"):        "a pod may have 1024: spread them over more nodes with --nodes",
		script("-G1 --requeue", "--no-requeue"): "line 3: --no-requeue: --requeue (line 2) says the " +
			"opposite: remove one of them",
		script("-G1 --switches=x"):                          "expected a number of switches, such as --switches=1",
		script("-G1 --mem=1G --mem-per-gpu=1G"):             "Slurm does not take it together with --mem=1G (line 2)",
		script("-G1 --mem=lots"):                            "line 2: --mem=lots: expected a whole number with K, M, G or T",
		script("-G1 -c1 --cpus-per-gpu=1"):                  "Slurm does not take it together with --cpus-per-task=1",
		script("-G1 --mem=999999999T"):                      "no node has that much memory",
		script("--gpus-per-node=999 --mem-per-gpu=999999G"): "GiB that this makes",
		script("-G1 -J ---"):                                "a Run's name consists of letters, digits and dashes",
	} {
		refused(t, text, want)
	}
}

// refused fails the test unless a script is refused with some words.
func refused(t *testing.T, text, want string) {
	t.Helper()
	_, _, err := translate(text, with)
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
		t.Errorf("%q: got %v, want %s", text, err, want)
	}
}

// TestWrongChoices has flags that are wrong, or missing.
func TestWrongChoices(t *testing.T) {
	for want, change := range map[string]func(*Choices){
		"the script has no --account, so nobody would pay":                     func(c *Choices) { c.Owner = "" },
		"--owner Org: an owner is a path of lower-case names joined by colons": func(c *Choices) { c.Owner = "Org" },
		"the script does not name a type of GPU":                               func(c *Choices) { c.GPUType = "" },
		"--gpu-type a b: a GPU type is the value of a node label":              func(c *Choices) { c.GPUType = "a b" },
		"the script's commands run in a container: name an image":              func(c *Choices) { c.Image = "" },
		"--image a b: the name of an image cannot contain spaces":              func(c *Choices) { c.Image = "a b" },
		"--priority-class A: expected the name of a " +
			"PriorityClass": func(c *Choices) { c.PriorityClass = "A" },
		"--checkpoint 1ms: expected a duration of whole seconds":                   func(c *Choices) { c.Checkpoint = 1e6 },
		"line 3: --no-requeue: --checkpoint 1m0s says that starting again is safe": func(c *Choices) { c.Checkpoint = 60e9 },
		"its file name cannot be one: add #SBATCH --job-name=NAME":                 func(c *Choices) { c.Name = "_" },
	} {
		c := with
		change(&c)
		_, _, err := translate(script("-G1", "--no-requeue")+"train\n", c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	c := with
	c.Owner = ""
	if _, _, err := translate(script("-G1 -A Ada_Lab"), c); err == nil ||
		!strings.Contains(err.Error(), "line 2: --account=Ada_Lab: this is not an owner") {
		t.Errorf("an account that is no owner: %v", err)
	}
}

// TestTold has what no Run says: all of it is told, with its line.
func TestTold(t *testing.T) {
	for text, want := range map[string]string{
		script("-G1", "--array=0-9%2"): "line 3: --array=0-9%2: job arrays are not supported",
		script("-G1 -d afterok:1"):     "line 2: --dependency=afterok:1: a Run cannot depend on another",
		script("-G1 -p gpu"):           "line 2: --partition=gpu: there are no partitions",
		script("-G1 --qos=high"):       "line 2: --qos=high: there is no QOS",
		script("-G1 -C a100"):          "line 2: --constraint=a100: node features have no equivalent",
		script("-G1 --exclusive"):      "line 2: --exclusive: GPUs of a pod are its own",
		script("-G1 --requeue"): "line 2: --requeue: a Run that is cut or loses its node " +
			"starts again only if its program saves",
		script("-G1 --frobnicate=3"):           "line 2: --frobnicate=3: this is not a known option of sbatch",
		script("-G1 --frob 3"):                 "line 2: --frob=3: this is not a known option",
		script("-G1 -o x", "-e y"):             "line 3: --error=y: Kubernetes keeps what the pods print",
		script("-G1 -t 5", "-t 6"):             "line 2: --time=5: --time=6 (line 3) comes after it and counts",
		script("-G1 --mem=0") + "train\n":      "line 2: --mem=0: a pod cannot request all memory",
		script("-G8 --mem-per-gpu=1G") + "x\n": "line 2: --mem-per-gpu=1G: it is not translated",
		script("-G1 -D logs") + "x\n":          "line 2: --chdir=logs: a directory of the image",
		script("-N1-2 --gpus-per-node=1"): "line 2: --nodes=1-2: the Run starts with as many nodes of " +
			"these as there is room for",
		script("-N1-2 -n8 --gpus-per-task=2"): "line 2: --nodes=1-2: each task has a pod of its own",
		script("-G1 --gres=nvme:1"): "line 2: --gres=nvme:1: of these only GPUs are translated: " +
			"ask for nvme:1",
		script("-G1 -J 'My Job'"):                        "line 2: --job-name=My Job: the Run is named my-job",
		script("-G9 --switches=2"):                       "9 GPUs are not 2 groups of whole pods",
		script("-G1") + "true\n#SBATCH -N2\n":            "line 4: #SBATCH: Slurm reads no directive after the first command",
		script("-G1") + "srun train\n":                   "line 3: srun: a Run starts the script in every pod itself",
		script("-G1") + "x=1\necho ${SLURM_PROCID:-0}\n": "line 4: $SLURM_PROCID: nothing sets it: RANK is the pod's rank",
		script("-G1") + "echo $SLURM_JOBID":              "$SLURM_JOBID: nothing sets it: PET_RDZV_ID",
		script("-G1") + "echo $SLURM_FOO":                "$SLURM_FOO: nothing sets it: set it in spec.template's env",
		script("-G1") + "cmd=$(sed 7q \"$1\")\ntrain $@": "line 3: $1: a script gets no arguments here",
		script("-G1") + "train ${@:2}\n":                 "line 3: $@: a script gets no arguments here",
		script("-G1") + "module load cuda; x":            "line 3: module: what modules load must be in the image",
		script("-G2 -N2") + "x":                          "line 3: Slurm runs the script once, on the first node",
		script("-G2 -N1 --ntasks-per-node=2") + "x":      "line 2: --ntasks-per-node=2: a pod runs the script once",
		script("-G1") + "#BSUB -q gpu\n": "line 3: #BSUB: directives of PBS and of LSF are not read: say what is meant " +
			"with #SBATCH, or leave it out",
		script("-G1") + "echo $$": "line 3: Kubernetes reads $$",
	} {
		_, told := mustTranslate(t, text, with)
		if !strings.Contains(told, want) {
			t.Errorf("%q: told %q, want %s", text, told, want)
		}
	}
	if _, told := mustTranslate(t, script("-G1 --ignore-pbs")+"#PBS -q gpu\n", with); strings.Contains(told, "#PBS") {
		t.Errorf("a script that says itself that they are not read: told %q", told)
	}
	if _, told := mustTranslate(t, script("-G1 # --array=1", "--time=60")+"# srun\ntrain srunner\n", with); told != "" {
		t.Errorf("a script that is as any Run is: told %q", told)
	}
	own := script("-G1", "--time=60") + "awk '{print $1}' x | awk \"{print \\$1}\"\n" +
		"export SLURM_CPU_BIND=none\ntrain $SLURM_CPU_BIND\n" +
		"each() {\n  train $1\n}\neach a\n"
	if _, told := mustTranslate(t, own, with); told != "" {
		t.Errorf("a script that says itself what its words mean: told %q", told)
	}
}

// TestEveryOptionIsTranslatedOrTold has each option alone, beside GPUs: it changes the Run, or there is a word on it.
func TestEveryOptionIsTranslatedOrTold(t *testing.T) {
	plain, _ := mustTranslate(t, script("-N 1 --gpus-per-node=1")+"x\n", with)
	values := map[string]string{"chdir": "/work", "gres": "gpu:2", "job-name": "other", "nodes": "2", "ntasks": "2",
		"time": "5", "gpus-per-node": "2", "account": "rai", "mem": "1G", "no-requeue": "", "gpus": "1", "gpus-per-task": "1"}
	same := map[string]bool{"account": true, "no-requeue": true, "gpus": true, "gpus-per-task": true,
		"ntasks-per-node": true} // as the Run is anyway
	for i := range options {
		o := &options[i]
		directive := "--" + o.name
		if value := values[o.name]; o.takes == always {
			if value == "" {
				value = "1"
			}
			directive += "=" + value
		}
		base := "--gpus-per-node=1"
		if o.name == "gres" || o.name == "gpus-per-node" {
			base = "-t0"
		}
		run, told := mustTranslate(t, script(base, directive)+"x\n", with)
		if !same[o.name] && told == "" && asJSON(t, run) == asJSON(t, plain) {
			t.Errorf("%s changes nothing, and nothing is told of it", directive)
		}
	}
}
