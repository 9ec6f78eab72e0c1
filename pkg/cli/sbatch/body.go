package sbatch

import (
	"regexp"
	"strings"
)

// variables are what Slurm sets for a script, and where it is found here.
var variables = map[string]string{
	"SLURM_PROCID":  "RANK is the pod's rank, from 0; torchrun gives each of its workers a RANK of its own",
	"SLURM_NODEID":  "RANK is the pod's rank, from 0, and there is one pod on a node",
	"SLURM_LOCALID": "torchrun gives each of its workers LOCAL_RANK",
	"SLURM_NTASKS": "WORLD_SIZE is the number of pods, and PET_NPROC_PER_NODE the GPUs of one; torchrun gives its " +
		"workers a WORLD_SIZE that counts workers",
	"SLURM_NNODES":             "WORLD_SIZE is the number of pods",
	"SLURM_NTASKS_PER_NODE":    "PET_NPROC_PER_NODE is the number of GPUs of a pod",
	"SLURM_GPUS_ON_NODE":       "PET_NPROC_PER_NODE is the number of GPUs of a pod",
	"SLURM_JOB_ID":             "PET_RDZV_ID is the Run's UID, and JOBTREE_RUN its name",
	"SLURM_JOB_NAME":           "JOBTREE_RUN is the Run's name",
	"SLURM_RESTART_COUNT":      "TORCHELASTIC_RESTART_COUNT is how often ranks have died and were started again",
	"SLURM_JOB_NODELIST":       "MASTER_ADDR is where rank 0 is; every pod has the name RUN-RANK.RUN",
	"SLURMD_NODENAME":          "HOSTNAME is the pod's name",
	"SLURM_SUBMIT_DIR":         "a pod starts in the directory that the image says, or spec.template's workingDir",
	"SLURM_CPUS_PER_TASK":      "write the number, or use nproc",
	"SLURM_ARRAY_TASK_ID":      "RANK tells the pods of a Run apart",
	"SLURM_ARRAY_TASK_COUNT":   "WORLD_SIZE is the number of pods",
	"SLURM_ARRAY_JOB_ID":       "JOBTREE_RUN is the Run's name",
	"SLURM_TMPDIR":             "mount an emptyDir volume in spec.template",
	"SLURM_LAUNCH_NODE_IPADDR": "MASTER_ADDR is where rank 0 is",
}

// sameAs are other names of those variables.
var sameAs = map[string]string{
	"SLURM_NPROCS": "SLURM_NTASKS", "SLURM_JOB_NUM_NODES": "SLURM_NNODES", "SLURM_JOBID": "SLURM_JOB_ID",
	"SLURM_NODELIST": "SLURM_JOB_NODELIST", "SLURM_GPUS_PER_NODE": "SLURM_GPUS_ON_NODE",
	"SLURM_STEP_NUM_TASKS": "SLURM_NTASKS", "SLURM_STEP_NUM_NODES": "SLURM_NNODES",
	"SLURM_TASKS_PER_NODE": "SLURM_NTASKS_PER_NODE", "SLURM_GPUS": "SLURM_NTASKS", "SLURM_GTIDS": "SLURM_PROCID",
}

// commands are Slurm's, and others that clusters with Slurm have, and what to do without them.
var commands = map[string]string{
	"srun": "a Run starts the script in every pod itself: remove srun, and start a process for each GPU with " +
		"torchrun, which reads its options from the environment",
	"mpirun":   "there is no hostfile: start the program in every pod with torchrun, or use an MPI operator's job",
	"mpiexec":  "there is no hostfile: start the program in every pod with torchrun, or use an MPI operator's job",
	"sbatch":   "pods cannot submit Runs: let the program save its work, and declare it with --checkpoint",
	"sbcast":   "put files that all pods need into the image, or on a volume in spec.template",
	"scancel":  "the Run ends when its script does",
	"scontrol": "MASTER_ADDR is where rank 0 is; every pod has the name RUN-RANK.RUN",
	"squeue":   "outside the pods, kubectl runs list shows it",
	"module":   "what modules load must be in the image: remove it",
}

var (
	ofSlurm = regexp.MustCompile(`\b(SLURM_|SLURMD_)[A-Z0-9_]+`)
	// called matches a word where a command may be, and what follows a blank.
	called = regexp.MustCompile("(?:^|[\\s;&|(`])" +
		"(srun|mpirun|mpiexec|sbatch|sbcast|scancel|scontrol|squeue|module)(?:[\\s;&|)`]|$)")
	// argument is one of the script, or all of them; quoted is what the shell expands nothing in, such as awk's $1.
	argument = regexp.MustCompile(`(?:^|[^\\])(\$\{?[0-9@*#])`)
	quoted   = regexp.MustCompile(`'[^']*'`)
	// sets gives a script, or a function of it, arguments; assigns sets a variable of Slurm's.
	sets    = regexp.MustCompile(`(?:^|[\s;&|])set\s+--|^\s*(?:function\s+\w+|\w+\s*\(\))`)
	assigns = regexp.MustCompile(`(?:^|[\s;&|])((?:SLURM_|SLURMD_)[A-Z0-9_]+)=`)
)

// readBody tells what the script uses that is not there, each once, and what differs in how it is started.
func (t *translation) readBody() {
	told, own := map[string]bool{}, false
	for i, line := range strings.Split(t.script.Body, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		number := t.script.FirstLine + i
		for _, found := range called.FindAllStringSubmatch(line, -1) {
			if word := found[1]; !told[word] {
				told[word] = true
				t.remark(number, word, "%s", commands[word])
			}
		}
		for _, found := range assigns.FindAllStringSubmatch(line, -1) {
			told[found[1]] = true // the script has it from itself
		}
		own = own || sets.MatchString(line)
		if !own {
			t.readArguments(number, line, told)
		}
		for _, name := range ofSlurm.FindAllString(line, -1) {
			if !told[name] {
				told[name] = true
				t.remark(number, "$"+name, "%s", insteadOf(name))
			}
		}
	}
	if t.width.pods() != 1 {
		t.remark(t.script.FirstLine, "", "Slurm runs the script once, on the first node, and srun its commands on all; "+
			"here every pod runs all of it once")
	}
	if tasks := t.perNodeTasks(); tasks != nil {
		t.note(tasks, "a pod runs the script once, whatever the number of tasks: start its processes with torchrun, "+
			"which has as many as the pod has GPUs")
	}
}

// readArguments tells, once, of the first of a script's arguments that a line of it reads: a Run's template is the same
// whoever submits it.
func (t *translation) readArguments(number int, line string, told map[string]bool) {
	found := argument.FindStringSubmatch(quoted.ReplaceAllString(line, ""))
	if found == nil || told["arguments"] {
		return
	}
	told["arguments"] = true
	t.remark(number, strings.Replace(found[1], "{", "", 1), "a script gets no arguments here, and it is empty: what "+
		"follows the script's name on sbatch's command line is to be written into the script, or into spec.template's env")
}

// perNodeTasks returns the directive that wants several tasks on a node; nil for none.
func (t *translation) perNodeTasks() *Option {
	for _, name := range []string{"ntasks-per-node", "ntasks"} {
		if o := t.given(name); o != nil && t.width.tasksPerPod > 1 {
			return o
		}
	}
	return nil
}

// insteadOf says where that is found which Slurm has in a variable.
func insteadOf(name string) string {
	known := name
	if other, found := sameAs[name]; found {
		known = other
	}
	if text, found := variables[known]; found {
		return "nothing sets it: " + text
	}
	return "nothing sets it: set it in spec.template's env if the program needs it"
}
