package integration

import (
	"context"
	"fmt"
	"os"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// pool holds clusters of tests that have passed, as they were when they were new.
var pool controlplane.Pool[*cluster]

// own has a place for each test that may have a cluster of its own at a time, since each takes half a gigabyte, and
// ofMany for each whose subtests share one: while these wait for their turn the cluster is taken, and those whose turn
// it is must not wait for its place.
var own, ofMany = make(chan struct{}, 5), make(chan struct{}, 2)

// pooled returns a cluster without a scheduler, and with the controller of JobSets or without.
func pooled(jobSets bool) (*cluster, error) {
	c, err := pool.Take(jobSets, func() (*cluster, error) {
		dir, err := os.MkdirTemp("", "jobtree-own-")
		if err != nil {
			return nil, err
		}
		c, err := openCluster(controlplane.Options{Dir: dir, Kwok: true, JobSet: jobSets})
		if err != nil {
			return nil, err
		}
		c.asNew, err = c.Contents(context.Background())
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return c, c.furnish()
}

// Restore implements controlplane.Lent. It is an error too if what was written to the ledger was wrong.
func (c *cluster) Restore(ctx context.Context) error {
	if err := c.RestoreTo(ctx, c.asNew, c.ledger.forget); err != nil {
		return err
	}
	c.ledger.mutex.Lock()
	defer c.ledger.mutex.Unlock()
	if len(c.ledger.wrong) > 0 {
		return fmt.Errorf("%v", c.ledger.wrong)
	}
	return nil
}
