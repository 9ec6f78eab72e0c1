package sbatch

import "strings"

// takes says whether an option has a value.
type takes int

const (
	always   takes = iota // it needs one
	optional              // after = alone
	nothing
)

// about is what is known of an option of sbatch.
type about struct {
	name  string
	short rune // 0 for none
	takes takes
	// advice is what to do instead of an option that a Run has nothing for; empty for those that are translated.
	advice string
}

// Advice that serves several options.
const (
	bindAdvice = "what a pod's processes are bound to is for the program to choose: leave it out, or have torchrun or " +
		"numactl do it"
	logAdvice = "what the pods print is kept by Kubernetes: kubectl runs logs RUN shows it; a file has to be on a " +
		"volume of spec.template"
	mailAdvice = "jobtree sends no mail: kubectl runs watch RUN --until Completed waits for the end and says by its " +
		"exit code how it went"
	prioAdvice = "no owner's Runs come before another's: among your own, --priority-class names a PriorityClass"
	nodeAdvice = "write a nodeSelector or an affinity into spec.template; nodes that are broken are avoided without it"
	hereAdvice = "this is about the call of sbatch, and nothing here: leave it out"
	siteAdvice = "there is nothing like it here: leave it out"
	coreAdvice = "cores are not chosen one by one: ask for CPUs with --cpus-per-task or --cpus-per-gpu"
	tripAdvice = "the limits and the environment of your shell do not come along: set them in the image, or in " +
		"spec.template"
)

// options are those of sbatch.
var options = []about{
	{"account", 'A', always, ""},
	{"checkpoint", 0, always, "Slurm's checkpoint plugins are nothing here: a program that saves says so with " +
		"--checkpoint"},
	{"chdir", 'D', always, ""},
	{"constraint", 'C', always, "a feature of Slurm's nodes is no label here: if it is a type of GPU, name it with " +
		"--gpu-type; otherwise write a nodeSelector into spec.template"},
	{"cpus-per-gpu", 0, always, ""},
	{"cpus-per-task", 'c', always, ""},
	{"exclusive", 0, optional, ""},
	{"gpus", 'G', always, ""},
	{"gpus-per-node", 0, always, ""},
	{"gpus-per-task", 0, always, ""},
	{"gres", 0, always, ""},
	{"hold", 'H', nothing, ""},
	{"job-name", 'J', always, ""},
	{"mem", 0, always, ""},
	{"mem-per-cpu", 0, always, ""},
	{"mem-per-gpu", 0, always, ""},
	{"nodes", 'N', always, ""},
	{"no-requeue", 0, nothing, ""},
	{"ntasks", 'n', always, ""},
	{"ntasks-per-node", 0, always, ""},
	{"qos", 'q', always, ""},
	{"requeue", 0, nothing, ""},
	{"switches", 0, always, ""},
	{"time", 't', always, ""},

	{"array", 'a', always, "a Run is no array: submit a Run for each task, or one with opportunistic: true and " +
		"gpusPerPod, whose " +
		"pods tell their task by RANK and run whenever there is room"},
	{"begin", 'b', always, "a Run starts as soon as it can: have it held back with --hold, and kubectl runs resume " +
		"it then"},
	{"comment", 0, always, "write it into metadata.annotations"},
	{"deadline", 0, always, "a Run has no date by which it has to end: kubectl runs plan says when it would start"},
	{"dependency", 'd', always, "a Run waits for no other: submit it when kubectl runs watch OTHER --until Completed " +
		"has ended, or have a workflow tool do that"},
	{"exclude", 'x', always, nodeAdvice},
	{"export", 0, always, tripAdvice},
	{"export-file", 0, always, tripAdvice},
	{"get-user-env", 0, optional, tripAdvice},
	{"propagate", 0, optional, tripAdvice},
	{"licenses", 'L', always, "licenses are not counted here"},
	{"nodefile", 'F', always, nodeAdvice},
	{"nodelist", 'w', always, nodeAdvice},
	{"no-kill", 'k', optional, "ranks of lost nodes are replaced one by one and the others go on: sparesPerGroup " +
		"keeps GPUs ready for it"},
	{"partition", 'p', always, "there are no partitions: the owner's Budget says where it may be, and --gpu-type on " +
		"which GPUs"},
	{"prefer", 0, always, "write a preferred node affinity into spec.template"},
	{"priority", 0, always, prioAdvice},
	{"nice", 0, optional, prioAdvice},
	{"reservation", 0, always, "nodes are not set aside by name: what Slurm calls a reservation is a Budget with a " +
		"window"},
	{"signal", 0, always, "before a pod is ended it has SIGTERM and the condition DisruptionTarget, noticePeriod " +
		"before: have the program save then"},
	{"time-min", 0, always, "a Run has one length: put what it needs at most into --time"},
	{"tmp", 0, always, "ask for ephemeral-storage in the requests of spec.template"},
	{"container", 0, always, "the image is the one of --image"},
	{"gpus-per-socket", 0, always, "sockets are not counted here: say --gpus-per-node"},
	{"mincpus", 0, always, coreAdvice},
	{"tres-per-task", 0, always, "say it with --gpus-per-task and --cpus-per-task"},
	{"ntasks-per-gpu", 0, always, "a pod starts the script once: start as many processes for each of its GPUs there"},
	{"error", 'e', always, logAdvice},
	{"output", 'o', always, logAdvice},
	{"open-mode", 0, always, logAdvice},
	{"input", 'i', always, "a pod has no standard input: read a file of a volume of spec.template"},
	{"mail-type", 0, always, mailAdvice},
	{"mail-user", 0, always, mailAdvice},
	{"wrap", 0, always, "Slurm takes it on its command line alone: put the command into the script"},

	{"acctg-freq", 0, always, siteAdvice},
	{"batch", 0, always, siteAdvice},
	{"bb", 0, always, "burst buffers are volumes here: write them into spec.template"},
	{"bbf", 0, always, "burst buffers are volumes here: write them into spec.template"},
	{"clusters", 'M', always, siteAdvice},
	{"cluster-constraint", 0, always, siteAdvice},
	{"container-id", 0, always, siteAdvice},
	{"contiguous", 0, nothing, "which nodes are near each other is said by --switches=1"},
	{"core-spec", 'S', always, coreAdvice},
	{"cores-per-socket", 0, always, coreAdvice},
	{"cpu-bind", 0, always, bindAdvice},
	{"cpu-freq", 0, always, siteAdvice},
	{"delay-boot", 0, always, siteAdvice},
	{"distribution", 'm', always, bindAdvice},
	{"extra", 0, always, siteAdvice},
	{"extra-node-info", 'B', always, coreAdvice},
	{"gid", 0, always, "write securityContext.runAsGroup into spec.template"},
	{"gpu-bind", 0, always, bindAdvice},
	{"gpu-freq", 0, always, siteAdvice},
	{"gres-flags", 0, always, bindAdvice},
	{"hint", 0, always, bindAdvice},
	{"immediate", 'I', optional, hereAdvice},
	{"ignore-pbs", 0, nothing, hereAdvice},
	{"kill-on-invalid-dep", 0, always, hereAdvice},
	{"mcs-label", 0, always, siteAdvice},
	{"mem-bind", 0, always, bindAdvice},
	{"network", 0, always, siteAdvice},
	{"ntasks-per-core", 0, always, coreAdvice},
	{"ntasks-per-socket", 0, always, coreAdvice},
	{"overcommit", 'O', nothing, siteAdvice},
	{"oversubscribe", 's', nothing, "GPUs are never shared; CPU and memory that a pod does not ask for are"},
	{"parsable", 0, nothing, hereAdvice},
	{"power", 0, always, siteAdvice},
	{"profile", 0, always, siteAdvice},
	{"quiet", 'Q', nothing, hereAdvice},
	{"reboot", 0, nothing, siteAdvice},
	{"sockets-per-node", 0, always, coreAdvice},
	{"spread-job", 0, nothing, "a Run touches as few domains and nodes as it can: write topologySpreadConstraints into " +
		"spec.template if it must not"},
	{"test-only", 0, nothing, "kubectl runs plan -f RUN.yaml says when it would start"},
	{"thread-spec", 0, always, coreAdvice},
	{"threads-per-core", 0, always, coreAdvice},
	{"tres-bind", 0, always, bindAdvice},
	{"uid", 0, always, "write securityContext.runAsUser into spec.template"},
	{"use-min-nodes", 0, nothing, "a Run starts as wide as there is room for, up to the most that it asks for"},
	{"verbose", 'v', nothing, hereAdvice},
	{"wait", 'W', nothing, "kubectl runs watch RUN --until Completed waits for the end"},
	{"wait-all-nodes", 0, always, "all pods of a Run start, or none does: leave it out"},
	{"wckey", 0, always, siteAdvice},
}

// aliases are other names that sbatch takes.
var aliases = map[string]string{"tasks-per-node": "ntasks-per-node", "workdir": "chdir", "share": "oversubscribe"}

// byName returns what is known of an option by its long name, or as much of it as no other begins with; nil for none.
func byName(name string) *about {
	if other, found := aliases[name]; found {
		name = other
	}
	var like *about
	several := false
	for i := range options {
		o := &options[i]
		if o.name == name {
			return o
		}
		if strings.HasPrefix(o.name, name) {
			several = several || like != nil
			like = o
		}
	}
	if several {
		return nil
	}
	return like
}

// byShort returns what is known of an option by its letter; nil for none.
func byShort(letter rune) *about {
	for i := range options {
		if options[i].short == letter && letter != 0 {
			return &options[i]
		}
	}
	return nil
}
