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
)

// numberEpochs gives each rank that is made anew an epoch above those that its Leases tell of, so that what is left of an
// earlier pod of the rank can be told from it. A Run that is new has had no pods. Nothing of this is kept anywhere but in the
// ledger.
func (c *Controllers) numberEpochs(ctx context.Context, run *rqv1.Run, pods []*corev1.Pod) error {
	var ranks []string
	for _, pod := range pods {
		if pod.Labels[rqv1.LabelEpoch] != "" {
			ranks = append(ranks, pod.Labels[rqv1.LabelIndex])
		}
	}
	if len(ranks) == 0 || len(run.Status.Conditions) == 0 {
		return nil
	}
	of, err := labels.NewRequirement(rqv1.LabelIndex, selection.In, ranks)
	if err != nil {
		return fmt.Errorf("selecting the Leases of ranks %v: %w", ranks, err)
	}
	leases := &metav1.PartialObjectMetadataList{}
	leases.SetGroupVersionKind(rqv1.GroupVersion.WithKind("LeaseList"))
	selector := labels.SelectorFromSet(labels.Set{rqv1.LabelRun: run.Name, rqv1.LabelRole: string(rqv1.RoleActive)}).Add(*of)
	if err := c.client.List(ctx, leases, client.InNamespace(run.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("counting the epochs of ranks: %w", err)
	}
	next := map[string]int{}
	for i := range leases.Items {
		l := leases.Items[i].Labels
		epoch, _ := strconv.Atoi(l[rqv1.LabelEpoch]) // 0 without one
		next[l[rqv1.LabelIndex]] = max(next[l[rqv1.LabelIndex]], epoch+1)
	}
	for _, pod := range pods {
		if pod.Labels[rqv1.LabelEpoch] != "" {
			lifecycle.SetEpoch(pod, next[pod.Labels[rqv1.LabelIndex]])
		}
	}
	return nil
}
