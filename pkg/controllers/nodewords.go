package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// nodeWords tells, as an event on the node, that it is left out for want of a label (R11), that the maintenance which
// its annotations announce counts for nothing, or that ranks do not leave it (R35).
type nodeWords struct {
	book   *book.Book
	events events.EventRecorder
	clock  clock.Clock
}

// nodeWord is what is wrong with a node: a reason for people, a sentence, and about which Run if that matters.
type nodeWord struct{ node, reason, run, text string }

// watch tells of each node once for as long as the same is wrong with it, until the context ends.
func (w *nodeWords) watch(ctx context.Context) {
	told := map[nodeWord]bool{}
	every(ctx, w.clock, 5*time.Second, func() {
		was := told
		told = map[nodeWord]bool{}
		for _, word := range w.words() {
			if !was[word] && !told[word] {
				tellNode(w.events, word.node, corev1.EventTypeWarning, word.reason, word.text)
			}
			told[word] = true
		}
	})
}

// words are what is wrong with nodes now.
func (w *nodeWords) words() (out []nodeWord) {
	for _, n := range w.book.LeftOutNodes() {
		out = append(out, nodeWord{n.Node, "LeftOut", "", "jobtree places nothing here: " + n.Reason})
	}
	for _, n := range w.book.MisannouncedNodes() {
		out = append(out, nodeWord{n.Node, "MaintenanceIgnored", "", "jobtree ignores this maintenance: " +
			n.Problem})
	}
	for _, n := range w.book.StuckDrains() {
		reason := "DrainWaits"
		if n.Maintained {
			reason = "RanksStay"
		}
		out = append(out, nodeWord{n.Node, reason, n.Run, "Run " + n.Run + ": " + n.Why})
	}
	return out
}
