package sim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// beyondVolume is what nodes say that the volume of a claim does not reach.
const beyondVolume = "node(s) didn't find available persistent volumes to bind"

// claimant returns the Run whose pods share a claim with a pod; false where it uses none that is bound in one zone.
func (c *Cluster) claimant(pod *corev1.Pod) (types.UID, bool) {
	if c.Zone == nil || pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
		return "", false
	}
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].PersistentVolumeClaim != nil {
			return rank.RunOf(pod)
		}
	}
	return "", false
}

// boundIn returns the zone in which the claim of a Run is bound, or is going to be for a pod that has reserved its
// place.
func (c *Cluster) boundIn(run types.UID) (zone string, bound bool) {
	if zone, bound := c.claims[run]; bound {
		return zone, true
	}
	for uid, pod := range c.Pods {
		_, binds := c.Binding[uid]
		of, shares := c.claimant(pod)
		if shares && of == run && (binds || c.Waiting.Has(uid)) {
			return c.Zone(c.Book.Assigned(uid)), true
		}
	}
	return "", false
}

// bindClaim has the claim of a pod's Run be bound for good where the pod is.
func (c *Cluster) bindClaim(pod *corev1.Pod, node string) {
	if run, shares := c.claimant(pod); shares {
		if _, bound := c.claims[run]; !bound {
			c.claims[run] = c.Zone(node)
		}
	}
}

// comesTo returns the zone in which the claim would be bound that the pods of a check share, once one more of them is
// accepted. Ranks in the places of spares are looked at each by itself.
func (c *Cluster) comesTo(place book.Place, coming string, check *book.Check) string {
	if _, shares := c.claimant(place.Pod); !shares || coming != "" || check.Seats {
		return coming
	}
	return c.Zone(place.Node)
}

// beyond says why a node turns a pod down that the claim of its Run does not reach; empty when it does. With coming,
// the zone in which others of a check would have it bound, it returns all nodes that these would keep the pod from.
func (c *Cluster) beyond(pod *corev1.Pod, node, coming string, check *book.Check) (why string, others []book.Turning) {
	run, shares := c.claimant(pod)
	if !shares {
		return "", nil
	}
	zone, bound := c.boundIn(run)
	switch {
	case bound && zone != c.Zone(node):
		return beyondVolume, nil
	case bound || coming == "" || coming == c.Zone(node):
		return "", nil
	}
	for _, name := range check.Serving {
		if c.Zone(name) != coming {
			others = append(others, book.Turning{Pod: pod.UID, Node: name, Why: beyondVolume, Shared: true})
		}
	}
	return beyondVolume, others
}
