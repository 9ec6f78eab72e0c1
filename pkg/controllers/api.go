package controllers

import "github.com/davidlangworthy/jobtree/pkg/reconcile"

// api carries decisions out on the API server.
type api struct {
	evidence
	pods
	leases
	statuses
	reservations
}

var _ reconcile.API = api{}
