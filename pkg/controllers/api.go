package controllers

import (
	"sync"

	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// api carries decisions out on the API server.
type api struct {
	evidence
	podWriter
	*guards
	leaseWriter
	runDeleter
	statusWriter
	reservationWriter
}

var _ reconcile.API = api{}

// newAPI returns what carries decisions out. lost is told of Budgets whose records have changed, and doubts tells
// whether the clock may be ahead.
func newAPI(o *Options, gone *endedPods, unseen *unseen, guards *guards, tell statusWriter, lost func(budgets []string),
	doubts func() bool) api {
	return api{
		evidence:          evidence{client: o.Client, kube: o.Kube, gone: gone},
		podWriter:         podWriter{kube: o.Kube, clock: o.Clock, untold: new(untold), unseen: unseen, events: o.events},
		guards:            guards,
		leaseWriter:       leaseWriter{book: o.Book, client: o.Client, lost: lost, unseen: unseen},
		runDeleter:        runDeleter{client: o.Client, doubts: doubts, refused: &sync.Once{}},
		statusWriter:      tell,
		reservationWriter: reservationWriter{book: o.Book, client: o.Client, events: o.events},
	}
}
