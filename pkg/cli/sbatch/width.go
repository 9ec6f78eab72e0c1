package sbatch

import "fmt"

// ask is what a script says of nodes, tasks and GPUs. What it does not say is 0.
type ask struct {
	given map[string]*Option // by name; of several, the last

	least, most         int64 // nodes
	tasks, tasksPerNode int64
	all                 int64 // --gpus
	perTask             int64
	perNode             int64 // of --gpus-per-node or --gres
	perNodeBy           *Option
	kind                string // type of the GPUs
	kindBy              *Option
}

// width is how many pods there are, of how many GPUs.
type width struct {
	total, perPod int64 // perPod is 0 where the script leaves it open
	// least is the number of GPUs to start with at least; total unless the script gives a range.
	least int64
	// tasksPerPod is 0 where it is not known.
	tasksPerPod int64
}

// pods is the most pods that there are; 0 where it is open.
func (w *width) pods() int64 {
	switch {
	case w.total == 1:
		return 1
	case w.perPod == 0:
		return 0
	}
	return w.total / w.perPod
}

// width works out what the script asks for. It fails if its directives contradict each other.
func (a *ask) width() (width, error) {
	if err := a.checkTasks(); err != nil {
		return width{}, err
	}
	if a.most == 0 && a.tasks > 0 && a.tasksPerNode > 0 {
		a.least = (a.tasks + a.tasksPerNode - 1) / a.tasksPerNode
		a.most = a.least
	}
	if err := a.joinTasks(); err != nil {
		return width{}, err
	}
	var w width
	var err error
	switch {
	case a.perNode == 0 && a.all == 0:
		return w, a.noGPUs()
	case a.perNode == 0:
		w, err = a.byTotal()
	case a.all == 0:
		w = a.byNodes()
	default:
		w, err = a.byBoth()
	}
	if err != nil {
		return w, err
	}
	w.tasksPerPod = a.tasksOf(&w)
	return w, a.bounded(&w)
}

// checkTasks fails if there cannot be as many tasks on as many nodes.
func (a *ask) checkTasks() error {
	switch tasks := a.given["ntasks"]; {
	case tasks == nil || a.most == 0:
	case a.tasks < a.least:
		return refuse(tasks, "there are fewer tasks than %s: write --nodes=%d, which Slurm would "+
			"take", a.by("nodes"), a.tasks)
	case a.tasksPerNode > 0 && a.tasks > a.most*a.tasksPerNode:
		return refuse(tasks, "there are more tasks than %s with %s hold, %d: correct one of the three", a.by("nodes"),
			a.by("ntasks-per-node"), a.most*a.tasksPerNode)
	}
	return nil
}

// joinTasks makes GPUs of a task into those of a node, or of the job.
func (a *ask) joinTasks() error {
	o := a.given["gpus-per-task"]
	if o == nil {
		return nil
	}
	if a.tasksPerNode > 0 {
		perNode := a.perTask * a.tasksPerNode
		if a.perNode > 0 && a.perNode != perNode {
			return refuse(o, "with %s that makes %d GPUs a node, and %s says %d: leave one of them out", a.by("ntasks-per-node"),
				perNode, named(a.perNodeBy), a.perNode)
		}
		a.perNode, a.perNodeBy = perNode, o
	}
	switch {
	case a.tasks > 0:
		all := a.perTask * a.tasks
		if a.all > 0 && a.all != all {
			return refuse(o, "with %s that makes %d GPUs, and %s says %d: leave one of them "+
				"out", a.by("ntasks"), all, a.by("gpus"),
				a.all)
		}
		a.all = all
	case a.all > 0 && a.all%a.perTask != 0:
		return refuse(o, "%s is no multiple of it, so that the tasks would not be alike: correct one of them", a.by("gpus"))
	case a.all == 0 && a.perNode == 0:
		a.perNode, a.perNodeBy = a.perTask, o // one task on each node
	}
	return nil
}

// byTotal divides GPUs among nodes, if the script says how many.
func (a *ask) byTotal() (width, error) {
	w := width{total: a.all, least: a.all}
	switch {
	case a.most > 0 && a.least == a.most && a.all%a.most != 0:
		o := a.given["gpus"]
		if o == nil {
			o = a.given["gpus-per-task"]
		}
		return w, refuse(o, "%d GPUs on %d nodes are not the same number on each, and the pods of a Run are all alike: "+
			"ask for a multiple of the nodes", a.all, a.most)
	case a.most > 0 && a.least == a.most:
		w.perPod = a.all / a.most
	case a.perTask > 1: // whole tasks have to fit a pod
		w.perPod = a.perTask
	}
	return w, nil
}

// byNodes multiplies GPUs of a node by the nodes.
func (a *ask) byNodes() width {
	if a.most == 0 {
		a.least, a.most = 1, 1
	}
	return width{total: a.most * a.perNode, perPod: a.perNode, least: a.least * a.perNode}
}

// byBoth holds GPUs of the job against those of a node.
func (a *ask) byBoth() (width, error) {
	o, perNode := a.given["gpus"], named(a.perNodeBy)
	if o == nil {
		o = a.given["gpus-per-task"]
	}
	nodes := a.all / a.perNode
	switch {
	case a.all%a.perNode != 0:
		return width{}, refuse(o, "%d GPUs are no whole nodes of %d as %s has it, and the pods of a Run are all alike: "+
			"correct one of them", a.all, a.perNode, perNode)
	case a.most > 0 && (nodes < a.least || nodes > a.most):
		of := "the nodes"
		if a.given["nodes"] != nil {
			of = a.by("nodes")
		}
		return width{}, refuse(o, "that makes %d GPUs, which are %d nodes of %d as %s has it, and %s says otherwise: leave "+
			"one of them out", a.all, nodes, a.perNode, perNode, of)
	}
	return width{total: a.all, perPod: a.perNode, least: a.all}, nil
}

// tasksOf returns the tasks of a pod; 0 where nothing tells.
func (a *ask) tasksOf(w *width) int64 {
	switch {
	case a.tasksPerNode > 0:
		return a.tasksPerNode
	case a.perTask > 0:
		return w.perPod / a.perTask
	case a.tasks > 0 && w.perPod > 0:
		return (a.tasks + w.pods() - 1) / w.pods()
	case a.tasks == 0:
		return 1
	}
	return 0
}

// bounded fails if a Run cannot have as many GPUs.
func (a *ask) bounded(w *width) error {
	switch {
	case w.total > mostGPUs:
		return &Error{Of: a.sources(), Text: fmt.Sprintf("that makes %d GPUs, and a Run may have %d: ask for fewer", w.total,
			mostGPUs)}
	case w.perPod > 1024:
		return &Error{Of: a.sources(), Text: fmt.Sprintf("that makes %d GPUs a pod, and a pod may have 1024: spread them "+
			"over more nodes with --nodes", w.perPod)}
	}
	return nil
}

// noGPUs is the refusal of a script that asks for none.
func (a *ask) noGPUs() error {
	e := &Error{Text: "the script asks for no GPUs, and a Run is made of them: add #SBATCH --gpus-per-node=N, or " +
		"make a Job of it"}
	for _, name := range []string{"exclusive", "gpus-per-socket", "tres-per-task", "ntasks-per-gpu"} {
		if o := a.given[name]; o != nil {
			e.Line, e.Of = o.Line, o.String()
			e.Text = "it does not say how many GPUs a node has, and nothing else does: add #SBATCH --gpus-per-node=N"
		}
	}
	return e
}

// by names a directive that is given, with its line.
func (a *ask) by(name string) string { return named(a.given[name]) }

// named names a directive with its line.
func named(o *Option) string { return fmt.Sprintf("%s (line %d)", o, o.Line) }

// sources names all directives that a number of GPUs comes from.
func (a *ask) sources() string {
	out := ""
	for _, name := range []string{"nodes", "ntasks", "ntasks-per-node", "gpus", "gpus-per-node", "gpus-per-task", "gres"} {
		if o := a.given[name]; o != nil {
			if out != "" {
				out += ", "
			}
			out += named(o)
		}
	}
	return out
}
