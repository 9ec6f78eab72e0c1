package list

import (
	"cmp"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// sortKeys are what Runs can be ordered by.
var sortKeys = []string{"name", "age", "owner", "gpus", "phase", "priority"}

// checkOrder refuses what Runs cannot be ordered by.
func (l *runList) checkOrder() error {
	if l.sortBy == "" || slices.Contains(sortKeys, l.sortBy) {
		return nil
	}
	return session.Fail(session.ExitUsage, "Runs cannot be ordered by %q%s; choose from %s", l.sortBy,
		session.Meant(l.sortBy, sortKeys), strings.Join(sortKeys, ", "))
}

// order orders Runs: the oldest, the widest and those of the highest priority first. Those that are equal stay in the
// order that they have.
func (l *runList) order(runs []rqv1.Run) {
	by := map[string]func(a, b *rqv1.Run) int{
		"name":  func(a, b *rqv1.Run) int { return strings.Compare(session.NameOf(a), session.NameOf(b)) },
		"age":   func(a, b *rqv1.Run) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) },
		"owner": func(a, b *rqv1.Run) int { return strings.Compare(string(a.Spec.Owner), string(b.Spec.Owner)) },
		"gpus": func(a, b *rqv1.Run) int {
			return cmp.Or(cmp.Compare(held(b), held(a)),
				cmp.Compare(b.Spec.Resources.TotalGPUs, a.Spec.Resources.TotalGPUs))
		},
		"phase": func(a, b *rqv1.Run) int {
			return cmp.Compare(slices.Index(view.Phases, string(view.PhaseOf(a))),
				slices.Index(view.Phases, string(view.PhaseOf(b))))
		},
		"priority": func(a, b *rqv1.Run) int { return cmp.Compare(priority(b), priority(a)) },
	}[l.sortBy]
	if by != nil {
		slices.SortStableFunc(runs, func(a, b rqv1.Run) int { return by(&a, &b) })
	}
}

// held is how many GPUs a Run has.
func held(run *rqv1.Run) int32 {
	if run.Status.Width == nil {
		return 0
	}
	return run.Status.Width.Allocated
}

func priority(run *rqv1.Run) int32 {
	if run.Status.Priority == nil {
		return 0
	}
	return *run.Status.Priority
}
