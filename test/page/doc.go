// Package page tests the web page of "kubectl runs dashboard" in a real browser, on a real control plane, and
// what is read of the scheduler there by a real Prometheus, with the panels and alerts of manifests/monitoring. It is a
// module of its own, so that what drives the browser is nobody's dependency: make test-page runs it.
package page
