package book

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Foreign says why a pod that is no Run's is not placed: it asks for GPUs, and those are given to nobody who has no payer (R41). It
// returns nil for one that asks for none, which is placed as any scheduler places it.
func (b *Book) Foreign(pod *corev1.Pod) *plan.Refusal {
	gpus := b.podGPUs(pod)
	if gpus == 0 {
		return nil
	}
	return &plan.Refusal{Reason: plan.Unsupported, WantedGPUs: gpus, ShortGPUs: gpus, Message: fmt.Sprintf(
		"nobody pays for the %d %s that the pod asks for in spec.containers[].resources, and scheduler %s gives GPUs to Runs alone "+
			"(R41): submit a Run with the pod's spec as its template (kubectl runs submit -f RUN.yaml), or ask for no GPUs",
		gpus, b.args.GPUResource, rqv1.SchedulerName)}
}
