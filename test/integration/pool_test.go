package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// pool holds clusters of tests that have passed, as they were when they were new. To start one takes longer than many
// a test.
var pool struct {
	sync.Mutex
	// idle are those that no test uses, with the controller of JobSets and without.
	idle map[bool][]*cluster
	// all are those that were ever started, to be stopped in the end.
	all []*cluster
}

// own has a place for each test that may have a cluster of its own at a time, since each takes half a gigabyte, and
// ofMany for each whose subtests share one: while these wait for their turn the cluster is taken, and those whose turn
// it is must not wait for its place.
var own, ofMany = make(chan struct{}, 5), make(chan struct{}, 2)

// pooled returns a cluster without a scheduler, and with the controller of JobSets or without, an idle one if there is
// one.
func pooled(jobSets bool) (*cluster, error) {
	pool.Lock()
	if idle := pool.idle[jobSets]; len(idle) > 0 {
		c := idle[len(idle)-1]
		pool.idle[jobSets] = idle[:len(idle)-1]
		pool.Unlock()
		return c, c.furnish()
	}
	pool.Unlock()
	dir, err := os.MkdirTemp("", "jobtree-own-")
	if err != nil {
		return nil, err
	}
	c, err := openCluster(controlplane.Options{Dir: dir, Kwok: true, JobSet: jobSets})
	if err != nil {
		return nil, err
	}
	if c.asNew, err = c.Contents(context.Background(), controlplane.Namespace); err != nil {
		return nil, err
	}
	pool.Lock()
	pool.all = append(pool.all, c)
	pool.Unlock()
	return c, c.furnish()
}

// release gives a cluster back when its test has ended. One whose test has failed, or that cannot be made as it was, is
// stopped.
func (c *cluster) release(t *testing.T) {
	if err := c.KillSchedulers(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		c.Stop()
		return
	}
	if err := within(time.Minute, func() error { return c.restore(context.Background()) }); err != nil {
		t.Logf("another test cannot use this one's cluster: %v", err)
		c.Stop()
		return
	}
	pool.Lock()
	defer pool.Unlock()
	if pool.idle == nil {
		pool.idle = map[bool][]*cluster{}
	}
	pool.idle[c.JobSet != nil] = append(pool.idle[c.JobSet != nil], c)
}

// stopPool ends all of them.
func stopPool() {
	for _, c := range pool.all {
		c.Stop()
		_ = os.RemoveAll(c.dir)
	}
}

// restore has the cluster be as it was when it was new. It is an error if it is not, or not yet.
func (c *cluster) restore(ctx context.Context) error {
	if err := c.Restore(ctx, c.asNew, c.ledger.forget); err != nil {
		return err
	}
	c.ledger.mutex.Lock()
	defer c.ledger.mutex.Unlock()
	if len(c.ledger.wrong) > 0 {
		return fmt.Errorf("%v", c.ledger.wrong)
	}
	return nil
}
