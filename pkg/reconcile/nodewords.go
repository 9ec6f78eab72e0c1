package reconcile

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// NodeWord is what an event on a node is to tell: a reason for people, a sentence, and about which Run if that matters.
type NodeWord struct{ Node, Reason, Run, Text string }

// NodeWords are what is wrong with nodes now: that one is left out for want of a label (R11), that the maintenance
// which its annotations announce counts for nothing, or that ranks do not leave it (R35).
func NodeWords(b *book.Book) (out []NodeWord) {
	for _, n := range b.LeftOutNodes() {
		out = append(out, NodeWord{n.Node, "LeftOut", "", "jobtree places nothing here: " + n.Reason})
	}
	for _, n := range b.MisannouncedNodes() {
		out = append(out, NodeWord{n.Node, "MaintenanceIgnored", "", "jobtree ignores this maintenance: " + n.Problem})
	}
	for _, n := range b.StuckDrains() {
		reason := "DrainWaits"
		if n.Maintained {
			reason = "RanksStay"
		}
		out = append(out, NodeWord{n.Node, reason, n.Run, "Run " + n.Run + ": " + n.Why})
	}
	return out
}

// StuckWords tell of pods that have not gone from their nodes long after their grace period (R37), so that a
// Reservation is planned around them: whoever looks after the node is to look at it.
func StuckWords(r *rqv1.Reservation, stuck []book.Stuck) (out []NodeWord) {
	for _, at := range stuck {
		run := r.Spec.RunRef.Namespace + "/" + r.Spec.RunRef.Name
		out = append(out, NodeWord{at.Node, "PodStuck", run,
			fmt.Sprintf("%s; Run %s, for which it was cut, is planned around it", at, run)})
	}
	return out
}
