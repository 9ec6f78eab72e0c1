// Package monitoring is what manifests/monitoring is written from: the alerts and the dashboards for the scheduler's
// metrics. It is pure data.
package monitoring
