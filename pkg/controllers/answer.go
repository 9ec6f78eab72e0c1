package controllers

import "context"

// answer does what the book asks for, until the context ends.
func (c *Controllers) answer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.book.Controllers().Filled():
		}
		asked := c.book.Controllers().Take()
		if len(asked.Lookup) > 0 {
			go c.ledger.lookUp(ctx, asked.Lookup)
		}
		for _, run := range asked.Reconcile {
			c.runs.changed(run)
		}
	}
}
