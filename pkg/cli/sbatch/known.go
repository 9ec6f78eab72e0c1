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
	bindAdvice = "the program binds its own processes: leave it out, or use torchrun or numactl"
	logAdvice  = "Kubernetes keeps what the pods print: kubectl runs logs RUN shows it; to write a file, mount a " +
		"volume in spec.template"
	mailAdvice = "jobtree sends no mail: kubectl runs watch RUN --until Completed waits for the end, and its exit " +
		"code says how the Run ended"
	prioAdvice = "Runs of different owners have no priority over each other: to order your own Runs, name a " +
		"PriorityClass with --priority-class"
	nodeAdvice = "write a nodeSelector or an affinity into spec.template; broken nodes are avoided anyway"
	hereAdvice = "it only affects the sbatch command itself: leave it out"
	siteAdvice = "jobtree has no equivalent: leave it out"
	coreAdvice = "individual cores cannot be chosen: ask for CPUs with --cpus-per-task or --cpus-per-gpu"
	tripAdvice = "the limits and the environment of your shell are not copied: set them in the image or in " +
		"spec.template"
)

// options are those of sbatch.
var options = []about{
	{"account", 'A', always, ""},
	{"checkpoint", 0, always, "Slurm's checkpoint plugins are not supported: if the program saves its work, " +
		"declare how often with --checkpoint"},
	{"chdir", 'D', always, ""},
	{"constraint", 'C', always, "node features have no equivalent: if the feature is a type of GPU, name it with " +
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

	{"array", 'a', always, "job arrays are not supported: submit a Run for each task, or one Run with " +
		"opportunistic: true and gpusPerPod, whose pods read their task from RANK and run whenever there is room"},
	{"begin", 'b', always, "a Run starts as soon as it can: hold it back with --hold, and start it later with " +
		"kubectl runs resume"},
	{"comment", 0, always, "write it into metadata.annotations"},
	{"deadline", 0, always, "a Run has no deadline: kubectl runs plan says when it would start"},
	{"dependency", 'd', always, "a Run cannot depend on another: submit it when kubectl runs watch OTHER --until " +
		"Completed has ended, or use a workflow tool"},
	{"exclude", 'x', always, nodeAdvice},
	{"export", 0, always, tripAdvice},
	{"export-file", 0, always, tripAdvice},
	{"get-user-env", 0, optional, tripAdvice},
	{"propagate", 0, optional, tripAdvice},
	{"licenses", 'L', always, "licenses are not counted here"},
	{"nodefile", 'F', always, nodeAdvice},
	{"nodelist", 'w', always, nodeAdvice},
	{"no-kill", 'k', optional, "ranks of lost nodes are replaced one by one while the others continue: " +
		"sparesPerGroup keeps GPUs ready for that"},
	{"partition", 'p', always, "there are no partitions: the owner's Budget says where the Run may be placed, and " +
		"--gpu-type on which GPUs"},
	{"prefer", 0, always, "write a preferred node affinity into spec.template"},
	{"priority", 0, always, prioAdvice},
	{"nice", 0, optional, prioAdvice},
	{"reservation", 0, always, "nodes cannot be reserved by name: Slurm's reservations correspond to a Budget " +
		"with a window"},
	{"signal", 0, always, "noticePeriod before a pod is ended, it gets SIGTERM and the condition " +
		"DisruptionTarget: the program can save then; after --time it gets SIGTERM, and runtime.onTimeout: Requeue " +
		"has the Run start again then"},
	{"time-min", 0, always, "a Run has one time limit: put the longest time that it needs into --time"},
	{"tmp", 0, always, "ask for ephemeral-storage in the requests of spec.template"},
	{"container", 0, always, "--image names the image"},
	{"gpus-per-socket", 0, always, "sockets are not counted: use --gpus-per-node"},
	{"mincpus", 0, always, coreAdvice},
	{"tres-per-task", 0, always, "use --gpus-per-task and --cpus-per-task"},
	{"ntasks-per-gpu", 0, always, "a pod starts the script once: start the processes for its GPUs in the script"},
	{"error", 'e', always, logAdvice},
	{"output", 'o', always, logAdvice},
	{"open-mode", 0, always, logAdvice},
	{"input", 'i', always, "a pod has no standard input: mount a volume in spec.template and read a file from it"},
	{"mail-type", 0, always, mailAdvice},
	{"mail-user", 0, always, mailAdvice},
	{"wrap", 0, always, "Slurm accepts it only on its command line: put the command into the script"},

	{"acctg-freq", 0, always, siteAdvice},
	{"batch", 0, always, siteAdvice},
	{"bb", 0, always, "burst buffers correspond to volumes: write them into spec.template"},
	{"bbf", 0, always, "burst buffers correspond to volumes: write them into spec.template"},
	{"clusters", 'M', always, siteAdvice},
	{"cluster-constraint", 0, always, siteAdvice},
	{"container-id", 0, always, siteAdvice},
	{"contiguous", 0, nothing, "use --switches=1 for nodes that are close to each other"},
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
	{"oversubscribe", 's', nothing, "GPUs are never shared; CPU and memory are shared unless a pod requests them"},
	{"parsable", 0, nothing, hereAdvice},
	{"power", 0, always, siteAdvice},
	{"profile", 0, always, siteAdvice},
	{"quiet", 'Q', nothing, hereAdvice},
	{"reboot", 0, nothing, siteAdvice},
	{"sockets-per-node", 0, always, coreAdvice},
	{"spread-job", 0, nothing, "a Run uses as few domains and nodes as possible: to spread it, write " +
		"topologySpreadConstraints into spec.template"},
	{"test-only", 0, nothing, "kubectl runs plan -f RUN.yaml says when it would start"},
	{"thread-spec", 0, always, coreAdvice},
	{"threads-per-core", 0, always, coreAdvice},
	{"tres-bind", 0, always, bindAdvice},
	{"uid", 0, always, "write securityContext.runAsUser into spec.template"},
	{"use-min-nodes", 0, nothing, "a Run starts as wide as there is room for, up to its maximum"},
	{"verbose", 'v', nothing, hereAdvice},
	{"wait", 'W', nothing, "kubectl runs watch RUN --until Completed waits for the end"},
	{"wait-all-nodes", 0, always, "a Run always starts all of its pods or none: leave it out"},
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
