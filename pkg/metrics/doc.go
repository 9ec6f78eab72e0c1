// Package metrics holds what jobtree counts in production. The scheduler serves it on /metrics with kube-scheduler's
// own.
package metrics
