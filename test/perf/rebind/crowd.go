package rebind

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
	"github.com/davidlangworthy/jobtree/test/perf/fleet"
)

// Crowd is how many Runs wait beside what is measured, each of so many pods of a node, and how many samples there are
// of a start and of a step of growth.
type Crowd struct{ Runs, Pods, Starts, Steps int }

const (
	crowdSpace = "crowd"
	// roomy is the GPU type of the nodes that an elastic Run grows on: whoever waits intends all others.
	roomy = "A100-80GB"
	// toldTarget is how long a Run may wait at most until it has a date or a place in line.
	toldTarget = 30 * time.Second
	// crowdPatience is how long the crowd may take until all are told.
	crowdPatience = 5 * time.Minute
)

// CrowdCosts is what a crowd takes.
type CrowdCosts struct {
	// Waiting is how many Runs wait, and Pods how many pods there are of them.
	Waiting int `json:"waiting"`
	Pods    int `json:"waitingPods"`
	// HeldWithin are the shortest times, in seconds, that the given shares of all holds of the scheduler's book did not
	// exceed, by the metric's buckets; the whole is the longest.
	HeldWithin map[string]float64 `json:"heldWithinSeconds"`
	// PeakBytes is the most memory that each process had resident.
	PeakBytes map[string]int64 `json:"peakBytes"`
}

// MeasureCrowd has a crowd wait for a fleet that is nearly full, and returns how long it takes until they are told
// when they start or where they stand, and, beside them, how long a Run of two nodes takes to start, a rank whose node
// is lost to be bound elsewhere, and a Run to grow by a node. The scheduler's log is copied to log.
func MeasureCrowd(ctx context.Context, size Size, crowd Crowd, log string) (cases []Case, costs *CrowdCosts,
	err error) {
	err = fleet.With(ctx, true, log, func(ctx context.Context, world *fleet.Lab) error {
		l, err := newLab(ctx, world, size)
		if err != nil {
			return err
		}
		c := &crowdLab{lab: l, crowd: crowd}
		if err := fleet.InTurn(ctx, "crowd", c.loadRoom, c.submitAll); err != nil {
			return err
		}
		for _, of := range []struct {
			name    string
			target  time.Duration
			measure func(context.Context) ([]time.Duration, error)
		}{
			{"told", toldTarget, c.told},
			{"start", 0, func(ctx context.Context) ([]time.Duration, error) { return c.sampled(ctx, crowd.Starts, c.start) }},
			{"growth", 0, func(ctx context.Context) ([]time.Duration, error) { return c.sampled(ctx, crowd.Steps, c.grow) }},
			{"1-node", singleTarget, c.swaps},
		} {
			samples, err := of.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s beside the crowd: %w", of.name, err)
			}
			cases = append(cases, Case{"Crowd/" + of.name, Distribute(samples, of.target)})
		}
		shown, err := c.showAll(ctx, "Crowd/", size.Signs)
		cases = append(cases, shown...)
		if err != nil {
			return fmt.Errorf("beside the crowd: %w", err)
		}
		costs, err = c.costs(ctx)
		return err
	})
	return cases, costs, err
}

// crowdLab is a fleet that others wait for.
type crowdLab struct {
	*lab
	crowd     Crowd
	submitted map[string]time.Time
	elastic   *rqv1.Run
}

// loadRoom makes the nodes that an elastic Run grows on, the namespace, and a Budget for each part: those who wait
// could pay for all that there is.
func (c *crowdLab) loadRoom(ctx context.Context) error {
	var nodes []corev1.Node
	for i := range c.crowd.Steps + 1 {
		node := fleet.Node(fmt.Sprintf("roomy-%03d", i), "roomy", nodeGPUs)
		node.Labels["gpu.flavor"] = roomy
		nodes = append(nodes, node)
	}
	if err := c.Load(ctx, nodes); err != nil {
		return err
	}
	if err := c.Namespace(ctx, crowdSpace); err != nil {
		return err
	}
	for owner, flavor := range map[string]string{"crowd": fleet.Flavor, "small": fleet.Flavor, "elastic": roomy} {
		if err := c.API.Create(ctx, &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: owner},
			Spec: rqv1.BudgetSpec{Owner: rqv1.Owner("org:" + owner), Envelopes: []rqv1.Envelope{
				{Name: "all", Flavor: flavor, Concurrency: int32(c.size.Nodes * nodeGPUs)}}}}); err != nil {
			return err
		}
	}
	c.elastic = c.run("elastic", "elastic", roomy, 1)
	c.elastic.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: nodeGPUs,
		MaxTotalGPUs: int32((c.crowd.Steps + 1) * nodeGPUs), StepGPUs: nodeGPUs, DesiredTotalGPUs: gpusOf(1)}
	if err := c.API.Create(ctx, c.elastic); err != nil {
		return err
	}
	return c.bound(ctx, c.elastic, 1)
}

// run returns a Run of an owner, of so many pods of a whole node.
func (c *crowdLab) run(name, owner, flavor string, pods int) *rqv1.Run {
	return &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: crowdSpace, Name: name},
		Spec: rqv1.RunSpec{
			Owner:     rqv1.Owner("org:" + owner),
			Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: *gpusOf(pods), GPUsPerPod: gpusOf(1)},
			Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "train", Image: "registry.k8s.io/pause:3.10.1"}},
			}},
		},
	}
}

// gpusOf returns the GPUs of so many nodes.
func gpusOf(nodes int) *int32 {
	gpus := int32(nodes * nodeGPUs)
	return &gpus
}

// submitAll has the crowd come.
func (c *crowdLab) submitAll(ctx context.Context) error {
	c.submitted = map[string]time.Time{}
	for i := range c.crowd.Runs {
		run := c.run(fmt.Sprintf("waits-%04d", i), "crowd", fleet.Flavor, c.crowd.Pods)
		c.submitted[run.Name] = time.Now()
		if err := c.API.Create(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// told returns how long it took until each of the crowd had a date, or a place in line.
func (c *crowdLab) told(ctx context.Context) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, crowdPatience)
	defer cancel()
	seen := map[string]time.Duration{}
	err := c.watchRuns(ctx, func(run *rqv1.Run) bool {
		at, waits := c.submitted[run.Name]
		if _, known := seen[run.Name]; waits && !known && (run.Status.Queue != nil || run.Status.EarliestStart != nil) {
			seen[run.Name] = time.Since(at)
		}
		return len(seen) == c.crowd.Runs
	})
	if err != nil {
		return nil, fmt.Errorf("%d of %d are told: %w", len(seen), c.crowd.Runs, err)
	}
	var out []time.Duration
	for _, d := range seen {
		out = append(out, d)
	}
	return out, nil
}

// watchRuns has Runs be looked at, those that are there first, until that says that it is enough.
func (c *crowdLab) watchRuns(ctx context.Context, enough func(*rqv1.Run) bool) error {
	var there rqv1.RunList
	if err := c.API.List(ctx, &there, client.InNamespace(crowdSpace)); err != nil {
		return err
	}
	for i := range there.Items {
		if enough(&there.Items[i]) {
			return nil
		}
	}
	events, err := c.API.Watch(ctx, &rqv1.RunList{}, client.InNamespace(crowdSpace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: there.ResourceVersion}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-events.ResultChan():
			run, is := event.Object.(*rqv1.Run)
			switch {
			case !open || !is:
				return fmt.Errorf("the watch of Runs has ended: %v", event.Object)
			case enough(run):
				return nil
			}
		}
	}
}

// bound waits until so many pods of a Run are bound, by its status.
func (c *crowdLab) bound(ctx context.Context, of *rqv1.Run, pods int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.watchRuns(ctx, func(run *rqv1.Run) bool {
		w := run.Status.Width
		return run.Name == of.Name && run.Status.Phase == rqv1.RunRunning && (w == nil || w.Allocated >= *gpusOf(pods))
	})
}

// sampled returns how long something takes, so many times.
func (c *crowdLab) sampled(ctx context.Context, times int, take func(context.Context, int) error) ([]time.Duration,
	error) {
	var out []time.Duration
	for i := range times {
		began := time.Now()
		if err := take(ctx, i); err != nil {
			return nil, err
		}
		out = append(out, time.Since(began))
	}
	return out, nil
}

// start has a Run of two nodes come that is over before anybody who waits has a date, and waits until it runs. It goes
// then.
func (c *crowdLab) start(ctx context.Context, sample int) error {
	run := c.run(fmt.Sprintf("small-%d", sample), "small", fleet.Flavor, 2)
	run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Minute}}
	if err := c.API.Create(ctx, run); err != nil {
		return err
	}
	if err := c.bound(ctx, run, 2); err != nil {
		return err
	}
	return c.API.Delete(ctx, run)
}

// grow has the elastic Run grow by a node.
func (c *crowdLab) grow(ctx context.Context, sample int) error {
	desired := fmt.Sprintf(`{"spec":{"malleable":{"desiredTotalGPUs":%d}}}`, *gpusOf(sample + 2))
	if err := c.API.Patch(ctx, c.elastic, client.RawPatch(types.MergePatchType, []byte(desired))); err != nil {
		return err
	}
	return c.bound(ctx, c.elastic, sample+2)
}

// swaps returns how long lost ranks were without a node.
func (c *crowdLab) swaps(ctx context.Context) ([]time.Duration, error) {
	s, err := c.repeat(ctx, c.size.Singles, func(sample int) []string { return c.nodesOf(sample, 1) })
	return s.bound, err
}

// costs returns what the crowd has taken.
func (c *crowdLab) costs(ctx context.Context) (*CrowdCosts, error) {
	out := &CrowdCosts{Waiting: c.crowd.Runs, PeakBytes: map[string]int64{}}
	pods, err := c.Kube.CoreV1().Pods(crowdSpace).List(ctx, metav1.ListOptions{LabelSelector: rqv1.LabelRun})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if _, waits := c.submitted[pods.Items[i].Labels[rqv1.LabelRun]]; waits {
			out.Pods++
		}
	}
	for _, p := range []*controlplane.Process{c.Plane.Scheduler, c.Plane.APIServer, c.Plane.Etcd} {
		if out.PeakBytes[p.Name], err = p.PeakMemory(); err != nil {
			return nil, err
		}
	}
	text, err := c.Plane.Metrics(ctx, c.Plane.Scheduler)
	if err != nil {
		return nil, err
	}
	out.HeldWithin, err = heldWithin(text)
	return out, err
}
