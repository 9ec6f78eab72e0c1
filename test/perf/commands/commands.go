// Package commands measures how long people wait for "kubectl runs": how long each command takes as a process of its
// own against a control plane of real processes, in a namespace with many Runs of which half run and half wait.
package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/perf/fleet"
	"github.com/davidlangworthy/jobtree/test/perf/rebind"
)

// Size is how much there is to show, and how often each command is given.
type Size struct {
	// Runs of one GPU are submitted, to half as many GPUs.
	Runs    int
	Repeats int
}

const (
	namespace = "commands"
	owner     = "org:bench"
	nodeGPUs  = 8
	// domainNodes share a fast fabric.
	domainNodes = 16
	// writers submit Runs at the same time.
	writers = 30
	// patience is how long it may take until half of the Runs run.
	patience = 5 * time.Minute
)

// lab is the world that commands are given in.
type lab struct {
	*fleet.Lab
	size Size
	// binary is the plugin, and dir where it runs, with the files that commands name.
	binary, dir string
}

// Case is how long one command took.
type Case struct {
	Name string
	rebind.Distribution
	// CPUSeconds is the processor time that the command itself spent, in the middle of its samples. It tells a slow
	// command from a machine that is busy with something else.
	CPUSeconds float64
}

// took is one sample.
type took struct{ wall, cpu time.Duration }

// Measure makes the Runs, gives each command and returns how long it took. The scheduler's log is copied to log.
func Measure(ctx context.Context, size Size, log string) (cases []Case, err error) {
	binary, err := filepath.Abs(filepath.Join("bin", "kubectl-runs"))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jobtree-perf-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	err = fleet.With(ctx, true, log, func(ctx context.Context, world *fleet.Lab) error {
		l := &lab{Lab: world, size: size, binary: binary, dir: dir}
		if err := fleet.InTurn(ctx, "Runs", l.loadNodes, l.loadOwner, l.submit, l.settle, l.writeFile); err != nil {
			return err
		}
		for _, c := range given(size.Runs) {
			samples, err := l.measure(ctx, c)
			if err != nil {
				return err
			}
			var wall, cpu []time.Duration
			for _, s := range samples {
				wall, cpu = append(wall, s.wall), append(cpu, s.cpu)
			}
			cases = append(cases, Case{fmt.Sprintf("Commands/%d/%s", size.Runs, c.name()),
				rebind.Distribute(wall, c.target), rebind.Distribute(cpu, 0).P50})
		}
		return nil
	})
	return cases, err
}

// loadNodes makes the fleet and waits until it is ready.
func (l *lab) loadNodes(ctx context.Context) error {
	var nodes []corev1.Node
	for i := range max(1, l.size.Runs/2/nodeGPUs) {
		nodes = append(nodes, fleet.Node(fmt.Sprintf("n%04d", i), fmt.Sprintf("domain-%02d", i/domainNodes), nodeGPUs))
	}
	return l.Load(ctx, nodes)
}

// loadOwner makes the namespace and a Budget that pays for all Runs.
func (l *lab) loadOwner(ctx context.Context) error {
	if err := l.Namespace(ctx, namespace); err != nil {
		return err
	}
	return l.API.Create(ctx, &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: rqv1.BudgetSpec{Owner: owner, Envelopes: []rqv1.Envelope{
			{Name: "all", Flavor: fleet.Flavor, Concurrency: int32(l.size.Runs)}}}})
}

// nameOf is a Run by its place in the order of submission.
func nameOf(i int) string { return fmt.Sprintf("train-%04d", i) }

// submit makes all Runs, the first of them first: these are the ones that are asked about.
func (l *lab) submit(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range l.size.Runs {
		group.Go(func() error {
			return l.API.Create(ctx, &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: nameOf(i)},
				Spec: rqv1.RunSpec{Owner: owner, Resources: rqv1.RunResources{GPUType: fleet.Flavor, TotalGPUs: 1}}})
		})
	}
	return group.Wait()
}

// settle waits until as many Runs run as there are GPUs, and some other has a date.
func (l *lab) settle(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		var runs rqv1.RunList
		if err := l.API.List(ctx, &runs, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		running, dated := 0, false
		for i := range runs.Items {
			if runs.Items[i].Status.Phase == rqv1.RunRunning {
				running++
			}
			dated = dated || runs.Items[i].Status.EarliestStart != nil
		}
		return dated && running == max(1, l.size.Runs/2/nodeGPUs)*nodeGPUs, nil
	})
}

// asked is the file of a Run that is planned and submitted.
const asked = `apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata: {generateName: asked-}
spec:
  owner: ` + owner + `
  resources: {gpuType: ` + fleet.Flavor + `, totalGPUs: 16}
  runtime: {checkpoint: 10m}
`

func (l *lab) writeFile(context.Context) error {
	return os.WriteFile(filepath.Join(l.dir, "asked.yaml"), []byte(asked), 0o600)
}

// run gives a command and returns how long it took.
func (l *lab) run(ctx context.Context, line string) (took, error) {
	process := exec.CommandContext(ctx, l.binary, strings.Fields(line)...)
	process.Dir = l.dir
	process.Env = append(os.Environ(), "KUBECONFIG="+l.Plane.Kubeconfig)
	began := time.Now()
	out, err := process.CombinedOutput()
	if err != nil {
		return took{}, fmt.Errorf("kubectl runs %s: %w: %s", line, err, out)
	}
	if len(out) == 0 {
		err = errors.New("it says nothing")
	}
	state := process.ProcessState
	return took{time.Since(began), state.UserTime() + state.SystemTime()}, err
}

// measure gives a command as often as is asked for, after one time that does not count.
func (l *lab) measure(ctx context.Context, c command) ([]took, error) {
	var all []took
	for i := range l.size.Repeats + 1 {
		sample, err := l.run(ctx, c.line)
		if err == nil && c.undo != "" {
			_, err = l.run(ctx, c.undo)
		}
		if err != nil {
			return nil, err
		}
		if i > 0 {
			all = append(all, sample)
		}
	}
	return all, nil
}
