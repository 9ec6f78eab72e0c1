package view

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ChangeInWords says what would help, and what it leaves short.
func ChangeInWords(c rqv1.RefusalChange, wanted int32) string {
	if c.GPUs < wanted {
		return fmt.Sprintf("%s (still short by %d)", c.What, wanted-c.GPUs)
	}
	return c.What
}

// HelpLines says what would have a Run paid for.
func HelpLines(r *rqv1.RunRefusal) []string {
	var out []string
	if r != nil {
		for _, c := range r.Changes {
			out = append(out, ChangeInWords(c, r.WantedGPUs))
		}
	}
	return out
}
