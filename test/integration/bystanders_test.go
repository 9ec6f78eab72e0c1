package integration

import (
	"context"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// furnish gives a cluster nodes as every cluster has some beside those of a test, which are to change nothing for it.
func (c *cluster) furnish() error {
	created, err := c.CreateNodes(context.Background(), sim.Machines())
	if err != nil {
		return err
	}
	return c.WaitNodesReady(context.Background(), created)
}
