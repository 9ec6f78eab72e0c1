package controllers

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// pace returns for how long a group is not looked at again; 0 for one that is looked at now. All of a large group is
// gone through each time, and its pods come, and get their ranks, one after the other.
func (g *groups) pace(key group.Key) time.Duration {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.of(key)
	if left := of.looked.Add(time.Duration(max(len(of.waiting), of.size)) * podPace).Sub(now); left > 0 {
		return left
	}
	of.looked = now
	return 0
}

// podPace is how much time there is between two looks at a group for each of its pods, a few times what that costs.
const podPace = 100 * time.Microsecond

// work looks at one group after the other, until the context ends.
func (g *groups) work(ctx context.Context) {
	go func() {
		<-ctx.Done()
		g.line.shutDown()
	}()
	for {
		key, shutdown := g.line.next()
		if shutdown {
			return
		}
		var err error
		after := g.pace(key)
		if after == 0 {
			after, err = g.look(ctx, key)
		}
		switch {
		case err != nil:
			klog.FromContext(ctx).V(2).Info("Retrying a group", "group", key, "err", err)
			g.line.again(key, g.workOn(key))
		default:
			g.line.Forget(key)
		}
		if after > 0 {
			g.line.add(key, min(lane.Begin, g.workOn(key)), after) // nothing is told of it
		}
		g.line.done(key)
	}
}
