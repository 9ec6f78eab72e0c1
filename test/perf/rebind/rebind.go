// Package rebind measures how long ranks of Runs are without a node after theirs has been lost. It runs the scheduler's
// own process against a control plane of real processes, in which kwok plays the kubelets of a fleet that Runs with
// spares use for the most part. Again and again it takes nodes away, waits by a watch until every lost rank is bound
// elsewhere, brings the nodes back, and waits until the world is as it was. It does so beside a crowd of Runs that wait
// for the fleet as well, and measures there what else goes on.
package rebind

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/test/perf/fleet"
)

// Size is how large the fleet is and how often it is struck.
type Size struct {
	// Nodes of 4 GPUs, in domains of 18. A wide Run uses 5 of them, a narrow one 3.
	Nodes, WideRuns, NarrowRuns int
	// Singles, Storms, Domains and Silences are how many samples there are of each case, and Signs of each sign; a storm
	// takes StormNodes.
	Singles, Storms, StormNodes, Domains, Signs, Silences int
}

// The targets for the 99th percentile, from the evidence to the last replacement's bind.
const (
	singleTarget = time.Second
	stormTarget  = 3 * time.Second
)

// lab is the world that is struck.
type lab struct {
	*fleet.Lab
	view  *view
	gangs []gang
	pods  int
	size  Size
}

// Measure makes a fleet of a size and returns the distributions of all cases. The scheduler's log is copied to log.
// After an error the cases that were measured are returned with it.
func Measure(ctx context.Context, size Size, log string) (cases []Case, err error) {
	err = fleet.With(ctx, true, log, func(ctx context.Context, world *fleet.Lab) error {
		l, err := newLab(ctx, world, size)
		if err != nil {
			return err
		}
		cases, err = l.measure(ctx)
		return err
	})
	return cases, err
}

func newLab(ctx context.Context, world *fleet.Lab, size Size) (*lab, error) {
	l := &lab{Lab: world, view: newView(), size: size}
	return l, fleet.InTurn(ctx, "fleet",
		func(ctx context.Context) error { return l.loadNodes(ctx, size.Nodes) },
		func(ctx context.Context) error { return l.loadOwner(ctx, int32(size.Nodes*nodeGPUs)) },
		func(ctx context.Context) error { return l.view.watch(ctx, l.Kube) },
		// The narrow ones fill up what the wide ones leave of their domains.
		func(ctx context.Context) error { return l.submit(ctx, "wide", size.WideRuns, 4) },
		func(ctx context.Context) error { return l.submit(ctx, "narrow", size.NarrowRuns, 2) })
}

// rest waits until every pod of every Run is bound and every node can be used.
func (l *lab) rest(ctx context.Context) error {
	if err := l.view.until(ctx, func() error { return l.view.atRest(l.pods) }); err != nil {
		return fmt.Errorf("the world does not come to rest: %w", err)
	}
	return nil
}

// measure measures all cases.
func (l *lab) measure(ctx context.Context) (cases []Case, err error) {
	for _, c := range []struct {
		name    string
		samples int
		target  time.Duration
		nodes   func(sample int) []string
	}{
		{"1-node", l.size.Singles, singleTarget, func(sample int) []string { return l.nodesOf(sample, 1) }},
		{fmt.Sprintf("%d-nodes", l.size.StormNodes), l.size.Storms, stormTarget, func(sample int) []string {
			return l.nodesOf(sample, l.size.StormNodes)
		}},
		{"domain", l.size.Domains, stormTarget, l.domainOf},
	} {
		fmt.Fprintf(os.Stderr, "perf: Rebind/%s\n", c.name)
		measured, err := l.repeat(ctx, c.samples, c.nodes)
		if err != nil {
			return cases, fmt.Errorf("rebind after the loss of %s: %w", c.name, err)
		}
		cases = append(cases, measured.cases("Rebind/"+c.name, c.target)...)
	}
	shown, err := l.showAll(ctx, "Rebind/", l.size.Signs)
	cases = append(cases, shown...)
	if err != nil {
		return cases, err
	}
	fmt.Fprintln(os.Stderr, "perf: Detection/silence")
	silences, err := l.detect(ctx)
	if err != nil {
		return cases, fmt.Errorf("detection of silence: %w", err)
	}
	return append(cases, Case{"Detection/silence", Distribute(silences, 0)}), nil
}

// stride picks the gangs that are struck one after the other from all over the fleet. It has no divisor in common with
// the number of Runs.
const stride = 7

// gang returns the one that is the nth to be struck.
func (l *lab) gang(n int) gang { return l.gangs[n*stride%len(l.gangs)] }

// nodesOf returns the nodes of one rank each of so many gangs.
func (l *lab) nodesOf(sample, count int) []string {
	l.view.mu.Lock()
	defer l.view.mu.Unlock()
	var nodes []string
	for i := range count {
		nodes = append(nodes, l.view.pods[l.gang(sample*count+i).rank(sample)].node)
	}
	return nodes
}

// domainOf returns all nodes of a gang's domain.
func (l *lab) domainOf(sample int) []string {
	l.view.mu.Lock()
	defer l.view.mu.Unlock()
	domain := l.view.nodes[l.view.pods[l.gang(sample).rank(0)].node].domain
	var nodes []string
	for name, n := range l.view.nodes {
		if n.domain == domain {
			nodes = append(nodes, name)
		}
	}
	slices.Sort(nodes)
	return nodes
}
