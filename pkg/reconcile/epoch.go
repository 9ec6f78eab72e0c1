package reconcile

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// numberEpochs gives each rank that is made anew an epoch above those that its Leases tell of, so that what is left of
// an earlier pod of the rank can be told from it. Nothing of this is kept anywhere but in the ledger. It need not be
// read for a Run's first pods, nor for a rank whose Lease was closed just now, since that one is the rank's last,
// unless it was open for what a pod that is gone had left: the rank may have had another since.
func (r *Runs) numberEpochs(ctx context.Context, run *rqv1.Run, pods []*corev1.Pod, closed []*rqv1.Lease,
	first bool) error {
	if len(pods) == 0 {
		return nil
	}
	next := map[string]int{}
	role := RankRole(run)
	for _, l := range closed {
		if l.Spec.RunRef.UID == run.UID && l.Labels[rqv1.LabelRole] == role && l.Status.EndsBy == nil {
			countEpoch(next, l.Labels)
		}
	}
	var ranks []string
	for _, pod := range pods {
		if _, known := next[pod.Labels[rqv1.LabelIndex]]; !known && pod.Labels[rqv1.LabelEpoch] != "" {
			ranks = append(ranks, pod.Labels[rqv1.LabelIndex])
		}
	}
	if len(ranks) > 0 && !first {
		leases, err := r.api.RankLeases(ctx, run, ranks)
		if err != nil {
			return err
		}
		for _, labels := range leases {
			countEpoch(next, labels)
		}
	}
	for _, pod := range pods {
		if pod.Labels[rqv1.LabelEpoch] != "" {
			lifecycle.SetEpoch(pod, next[pod.Labels[rqv1.LabelIndex]])
		}
	}
	return nil
}

// RankRole is the role of the Leases of a Run's ranks: of its shards, where it is opportunistic.
func RankRole(run *rqv1.Run) string { return string(rank.RoleOf(&run.Spec, rank.Part{})) }

// countEpoch notes that a rank's next epoch is above that of one of its Leases, which has the given labels.
func countEpoch(next map[string]int, lease map[string]string) {
	epoch, _ := strconv.Atoi(lease[rqv1.LabelEpoch]) // 0 without one
	next[lease[rqv1.LabelIndex]] = max(next[lease[rqv1.LabelIndex]], epoch+1)
}
