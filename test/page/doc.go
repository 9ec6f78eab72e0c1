// Package page tests the web page of "kubectl runs dashboard" in a real browser, on a real control plane. It is a
// module of its own, so that what drives the browser is nobody's dependency: make test-page runs it.
package page
