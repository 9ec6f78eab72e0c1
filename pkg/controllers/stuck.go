package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// tellNodes makes events of pods that have not gone from their nodes long after their grace period (R37): whoever looks after
// the node is to look at it.
func (c *Controllers) tellNodes(r *rqv1.Reservation, stuck []book.Stuck) {
	for _, s := range stuck {
		tellNode(c.events, s.Node, corev1.EventTypeWarning, "PodStuck",
			fmt.Sprintf("%s; Run %s/%s, for which it was cut, is planned around it", s, r.Spec.RunRef.Namespace, r.Spec.RunRef.Name))
	}
}
