package plugins

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// unallocated says what a ResourceClaim is that pods of one gang share.
const unallocated = "ResourceClaim %s, which several of these pods share, is not allocated yet: kube-scheduler " +
	"allocates a claim for one pod, and gives it to others once that one is bound, and these start together: use " +
	"resourceClaimTemplateName, by which each pod has a claim of its own, or have another pod allocate it first"

// sharedClaim says so of a ResourceClaim that several pods of the gang of a pod which waits use, and that nobody has
// been given yet; empty for none. The gang would wait for it for ever: while the first of them waits for the others,
// its claim is being allocated, and none of the others may have it.
func (pl *Jobtree) sharedClaim(pod *corev1.Pod) string {
	if len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	devices := pl.handle.SharedDRAManager()
	if devices == nil {
		return ""
	}
	for i := range pod.Spec.ResourceClaims {
		named := pod.Spec.ResourceClaims[i].ResourceClaimName
		if named == nil || pl.book.Sharers(pod.UID, *named) < 2 {
			continue
		}
		claim, err := devices.ResourceClaims().Get(pod.Namespace, *named)
		if err == nil && claim.Status.Allocation == nil {
			return fmt.Sprintf(unallocated, *named)
		}
	}
	return ""
}
