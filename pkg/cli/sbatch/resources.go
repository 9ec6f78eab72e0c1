package sbatch

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// readWidth reads what the script says of nodes, tasks and GPUs, and works out the pods.
func (t *translation) readWidth() error {
	a := &t.ask
	for _, of := range []struct {
		name string
		into *int64
	}{{"ntasks", &a.tasks}, {"ntasks-per-node", &a.tasksPerNode}} {
		if o := t.given(of.name); o != nil {
			n, err := count(o)
			if err != nil {
				return err
			}
			*of.into = n
		}
	}
	if o := t.given("nodes"); o != nil {
		var err error
		if a.least, a.most, err = span(o); err != nil {
			return err
		}
	}
	if err := t.readGPUCounts(); err != nil {
		return err
	}
	var err error
	t.width, err = a.width()
	return err
}

// readGPUCounts reads the directives that count GPUs. One that asks for none says nothing.
func (t *translation) readGPUCounts() error {
	a := &t.ask
	for _, name := range []string{"gpus", "gpus-per-node", "gpus-per-task", "gres"} {
		o := t.given(name)
		if o == nil {
			continue
		}
		var found *gpus
		if name == "gres" {
			var others []string
			var err error
			if found, others, err = readGres(o); err != nil {
				return err
			}
			if len(others) > 0 {
				t.note(o, "of these only GPUs are translated: ask for %s in the limits of spec.template if a device plugin offers "+
					"it", strings.Join(others, ", "))
			}
		} else {
			g, err := readGPUs(o, o.Value)
			if err != nil {
				return err
			}
			found = &g
		}
		if found == nil || found.count == 0 {
			delete(a.given, name)
			continue
		}
		if err := a.take(o, *found); err != nil {
			return err
		}
	}
	return nil
}

// take notes GPUs that a directive asks for.
func (a *ask) take(o *Option, g gpus) error {
	if g.kind != "" && a.kindBy != nil && a.kind != g.kind {
		return refuse(o, "%s has another type, and all GPUs of a Run have one type: correct one of them", named(a.kindBy))
	}
	if g.kind != "" {
		a.kind, a.kindBy = g.kind, o
	}
	switch {
	case o.Name == "gpus":
		a.all = g.count
	case o.Name == "gpus-per-task":
		a.perTask = g.count
	case a.perNode > 0 && a.perNode != g.count:
		return refuse(o, "%s says %d GPUs a node: leave one of them out", named(a.perNodeBy), a.perNode)
	default:
		a.perNode, a.perNodeBy = g.count, o
	}
	return nil
}

// resources gives the Run its GPUs.
func (t *translation) resources() error {
	kind := t.choices.GPUType
	switch by := t.ask.kindBy; {
	case len(validation.IsValidLabelValue(kind)) > 0:
		return &Error{Of: "--gpu-type " + kind, Text: "a GPU type is the value of a node label, such as H100-80GB"}
	case kind != "":
	case by == nil:
		e := &Error{Text: "the script does not name a type of GPU: name it with --gpu-type, such as --gpu-type " +
			"H100-80GB; kubectl get nodes -L gpu.flavor lists the types"}
		for _, name := range []string{"partition", "constraint"} {
			if o := t.given(name); o != nil {
				e.Line, e.Of = o.Line, o.String()
			}
		}
		return e
	case len(validation.IsValidLabelValue(t.ask.kind)) > 0:
		return refuse(by, "%q is not a GPU type, which is the value of a node's label: set it with --gpu-type, such as "+
			"--gpu-type H100-80GB", t.ask.kind)
	default:
		kind = t.ask.kind
		t.note(by, "the GPU type is %s: say it with --gpu-type if nodes call it otherwise; kubectl get nodes -L gpu.flavor "+
			"lists what there is", kind)
	}
	w := &t.width
	t.run.Spec.Resources = rqv1.RunResources{GPUType: kind, TotalGPUs: int32(w.total)}
	if w.perPod > 0 {
		perPod := int32(w.perPod)
		t.run.Spec.Resources.GPUsPerPod = &perPod
	}
	if w.least < w.total {
		t.run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: int32(w.least), MaxTotalGPUs: int32(w.total),
			StepGPUs: int32(w.perPod)}
		t.note(t.given("nodes"), "the Run starts with as many nodes of these as there is room for, and may grow and shrink "+
			"between them later: if its program cannot, write one number")
	}
	t.tellWidth()
	return nil
}

// tellWidth says what the numbers leave open.
func (t *translation) tellWidth() {
	w, nodes := &t.width, t.given("nodes")
	switch tasks := t.given("ntasks"); {
	case w.perPod == 0 && nodes != nil:
		t.note(nodes, "the scheduler chooses how many GPUs a pod has, usually a whole node: to choose it yourself, "+
			"use --gpus-per-node")
	case w.pods() == 1 && tasks != nil && nodes == nil && t.ask.tasksPerNode == 0 && t.ask.tasks > 1 && t.ask.all == 0:
		t.note(tasks, "all tasks are on one node, which Slurm might spread: say with --nodes how many there are to be")
	case t.ask.perTask > 1 && t.ask.perNode == 0 && t.ask.least != t.ask.most:
		t.note(nodes, "each task has a pod of its own, wherever there is room, and --mem is each one's: say one number of "+
			"nodes")
	case t.ask.perTask > 1 && t.ask.perNode == 0 && t.ask.most == 0:
		t.note(t.given("gpus-per-task"), "each task has a pod of its own: say with --nodes or --ntasks-per-node how many "+
			"are on a node")
	}
	if o := t.given("exclusive"); o != nil {
		t.note(o, "GPUs of a pod are its own, and CPU and memory that it does not ask for are not: say --gpus-per-node "+
			"with all that a node has, and --mem and --cpus-per-task")
	}
}

// requests are the CPUs and the memory that a pod asks for.
func (t *translation) requests() (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	cpus, err := t.cpus()
	if err != nil {
		return nil, err
	}
	if cpus > 0 {
		list[corev1.ResourceCPU] = *resource.NewQuantity(cpus, resource.DecimalSI)
	}
	kib, err := t.memory(cpus)
	if err != nil {
		return nil, err
	}
	if kib > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(kib<<10, resource.BinarySI)
	}
	return list, nil
}

// share is a number times a pod's GPUs or tasks; 0, with a note, if the script does not say how many those are.
func (t *translation) share(o *Option, each, of int64, what, say string) int64 {
	if of == 0 {
		t.note(o, "it is not translated, since the script does not say how many %s a node has: add %s", what, say)
	}
	return each * of
}

// mostCPUs bounds the CPUs of a pod.
const mostCPUs = 1_000_000

// cpus returns the CPUs of a pod; 0 for none asked for.
func (t *translation) cpus() (int64, error) {
	perTask, perGPU := t.given("cpus-per-task"), t.given("cpus-per-gpu")
	o := perTask
	if o == nil {
		o = perGPU
	}
	if o == nil {
		return 0, nil
	}
	if perTask != nil && perGPU != nil {
		return 0, refuse(perGPU, "Slurm does not take it together with %s: leave one of them out", named(perTask))
	}
	each, err := count(o)
	if err != nil {
		return 0, err
	}
	cpus := int64(0)
	if o == perGPU {
		cpus = t.share(o, each, t.width.perPod, "GPUs", "--gpus-per-node")
	} else {
		cpus = t.share(o, each, t.width.tasksPerPod, "tasks", "--ntasks-per-node")
	}
	if cpus > mostCPUs {
		return 0, refuse(o, "no node has the %d CPUs that this makes: ask for fewer", cpus)
	}
	return cpus, nil
}

// memory returns the memory of a pod in KiB; 0 for none asked for.
func (t *translation) memory(cpus int64) (int64, error) {
	var o *Option
	for _, name := range []string{"mem", "mem-per-cpu", "mem-per-gpu"} {
		other := t.given(name)
		if other != nil && o != nil {
			return 0, refuse(other, "Slurm does not take it together with %s: leave one of them out", named(o))
		}
		if other != nil {
			o = other
		}
	}
	if o == nil {
		return 0, nil
	}
	each, err := memory(o)
	if err != nil {
		return 0, err
	}
	kib := each
	switch {
	case each == 0:
		t.note(o, "a pod cannot request all memory of a node: write an amount, or leave it out")
	case o.Name == "mem-per-cpu":
		kib = t.share(o, each, cpus, "CPUs", "--cpus-per-task or --cpus-per-gpu")
	case o.Name == "mem-per-gpu":
		kib = t.share(o, each, t.width.perPod, "GPUs", "--gpus-per-node")
	}
	if kib > mostMemory {
		return 0, refuse(o, "no node has the %d GiB that this makes: ask for less", kib>>20)
	}
	return kib, nil
}
