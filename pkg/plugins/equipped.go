package plugins

import (
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// equipped reports whether the volumes and devices are there that are made for each pod once it is, which takes a
// moment: until then whoever is asked about the pod turns all nodes down.
func equipped(handle fwk.Handle, places []book.Place) bool {
	claims := handle.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	devices := handle.SharedDRAManager()
	for _, place := range places {
		pod := place.Pod
		for i := range pod.Spec.Volumes {
			if pod.Spec.Volumes[i].Ephemeral == nil {
				continue
			}
			name := ephemeral.VolumeClaimName(pod, &pod.Spec.Volumes[i])
			if _, err := claims.PersistentVolumeClaims(pod.Namespace).Get(name); err != nil {
				return false
			}
		}
		for i := range pod.Spec.ResourceClaims {
			name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err != nil {
				return false
			}
			if name == nil || devices == nil {
				continue
			}
			if _, err := devices.ResourceClaims().Get(pod.Namespace, *name); err != nil {
				return false
			}
		}
	}
	return true
}
