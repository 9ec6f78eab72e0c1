package plugins

import (
	"context"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// arrange finds nodes for a start where the rules accept its pods one after the other, if they are to be spread. How
// many a node may have hangs on where the others are, so that kube-scheduler's own order decides: it places one pod
// after the other. It returns nil where that comes to nothing.
func (v *verifier) arrange(ctx context.Context, check *book.Check) []string {
	anew := &verifier{plugins: v.plugins, snapshot: v.snapshot, knows: v.knows, over: v.over}
	restore, ok := anew.without(ctx, check.Leaving)
	defer restore()
	if !ok {
		return nil
	}
	return check.Arrange(func(place book.Place) book.Verdict {
		accepted := len(anew.accepted)
		switch {
		case anew.over() || !anew.put(ctx, check, place, false):
			return book.Unknown
		case len(anew.accepted) > accepted:
			return book.Accepted
		case anew.kindOf(ctx, place.Pod).rule == names.PodTopologySpread:
			return book.Skewed
		}
		return book.Refused
	})
}
