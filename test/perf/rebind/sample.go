package rebind

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// pace is the time between two nodes that fall silent, so that each is found out on its own.
const pace = 300 * time.Millisecond

// stages are the samples of one case: how long after the evidence the API server had taken all of it, all nodes were
// recorded as lost, all replacements were made, and all were bound.
type stages struct {
	written, recorded, made, bound []time.Duration
}

// cases returns the distributions of the stages. The last one has the target.
func (s *stages) cases(name string, target time.Duration) []Case {
	return []Case{
		{name + "/written", Distribute(s.written, 0)},
		{name + "/recorded", Distribute(s.recorded, 0)},
		{name + "/made", Distribute(s.made, 0)},
		{name, Distribute(s.bound, target)},
	}
}

// add takes a loss whose ranks are all bound again for a sample.
func (s *stages) add(v *view, lost *loss) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var recorded, made, bound time.Time
	for name := range lost.leases {
		recorded = later(recorded, v.nodes[name].recorded)
	}
	for rank := range lost.ranks {
		made, bound = later(made, v.pods[rank].made), later(bound, v.pods[rank].bound)
	}
	s.written = append(s.written, lost.written.Sub(lost.began))
	s.recorded = append(s.recorded, recorded.Sub(lost.began))
	s.made = append(s.made, made.Sub(lost.began))
	s.bound = append(s.bound, bound.Sub(lost.began))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// repeat takes nodes away, again and again.
func (l *lab) repeat(ctx context.Context, samples int, nodes func(sample int) []string) (*stages, error) {
	s := &stages{}
	for i := range samples {
		lost, err := l.strike(ctx, nodes(i))
		if err != nil {
			return s, err
		}
		if err := l.view.until(ctx, func() error {
			if err := l.view.recorded(lost); err != nil {
				return err
			}
			return l.view.replaced(lost)
		}); err != nil {
			return s, fmt.Errorf("sample %d: %w", i, err)
		}
		s.add(l.view, lost)
		if err := l.heal(ctx, lost); err != nil {
			return s, err
		}
		if err := l.rest(ctx); err != nil {
			return s, fmt.Errorf("sample %d: %w", i, err)
		}
	}
	return s, nil
}

// detect has kubelets fall silent, and returns how long after the last sign of life the loss of each node was recorded.
func (l *lab) detect(ctx context.Context) ([]time.Duration, error) {
	lost := &loss{leases: map[string]coordinationv1.LeaseSpec{}}
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for i := range l.size.Silences {
		if err := l.silence(ctx, lost, l.nodesOf(i, 1)[0]); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
	if err := l.view.until(ctx, func() error { return l.view.recorded(lost) }); err != nil {
		return nil, err
	}
	var silences []time.Duration
	l.view.mu.Lock()
	for name, lease := range lost.leases {
		silences = append(silences, l.view.nodes[name].recorded.Sub(lease.RenewTime.Time))
	}
	l.view.mu.Unlock()
	return silences, nil
}
