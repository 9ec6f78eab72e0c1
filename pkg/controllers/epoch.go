package controllers

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// numberEpochs gives each rank that is made anew an epoch above those that its Leases tell of, so that what is left of an
// earlier pod of the rank can be told from it. A Run that is new has had no pods. Nothing of this is kept anywhere but in the
// ledger; it need not be read for a rank whose Lease was closed just now, since that one is the rank's last.
func (c *Controllers) numberEpochs(ctx context.Context, run *rqv1.Run, pods []*corev1.Pod, closed []*rqv1.Lease) error {
	if len(pods) == 0 {
		return nil
	}
	next := map[string]int{}
	for _, l := range closed {
		if l.Spec.RunRef.UID == run.UID && l.Labels[rqv1.LabelRole] == rankRole(run) {
			countEpoch(next, l.Labels)
		}
	}
	var ranks []string
	for _, pod := range pods {
		if _, known := next[pod.Labels[rqv1.LabelIndex]]; !known && pod.Labels[rqv1.LabelEpoch] != "" {
			ranks = append(ranks, pod.Labels[rqv1.LabelIndex])
		}
	}
	if len(ranks) > 0 && len(run.Status.Conditions) > 0 {
		if err := c.readEpochs(ctx, run, ranks, next); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		if pod.Labels[rqv1.LabelEpoch] != "" {
			lifecycle.SetEpoch(pod, next[pod.Labels[rqv1.LabelIndex]])
		}
	}
	return nil
}

// rankRole is the role of the Leases of a Run's ranks: of its shards, where it is opportunistic.
func rankRole(run *rqv1.Run) string { return string(rank.RoleOf(&run.Spec, rank.Part{})) }

// countEpoch notes that a rank's next epoch is above that of one of its Leases, which has the given labels.
func countEpoch(next map[string]int, lease map[string]string) {
	epoch, _ := strconv.Atoi(lease[rqv1.LabelEpoch]) // 0 without one
	next[lease[rqv1.LabelIndex]] = max(next[lease[rqv1.LabelIndex]], epoch+1)
}

// readEpochs finds the next epochs of ranks in the ledger.
func (c *Controllers) readEpochs(ctx context.Context, run *rqv1.Run, ranks []string, next map[string]int) error {
	of, err := labels.NewRequirement(rqv1.LabelIndex, selection.In, ranks)
	if err != nil {
		return fmt.Errorf("selecting the Leases of ranks %v: %w", ranks, err)
	}
	leases := &metav1.PartialObjectMetadataList{}
	leases.SetGroupVersionKind(rqv1.GroupVersion.WithKind("LeaseList"))
	selector := labels.SelectorFromSet(labels.Set{rqv1.LabelRun: run.Name, rqv1.LabelRole: rankRole(run)}).Add(*of)
	if err := c.client.List(ctx, leases, client.InNamespace(run.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("counting the epochs of ranks: %w", err)
	}
	for i := range leases.Items {
		countEpoch(next, leases.Items[i].Labels)
	}
	return nil
}
