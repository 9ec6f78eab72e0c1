// Package plugins is the scheduler-framework glue: one small file per concern, each a thin adapter to the book. It
// holds no policy.
package plugins
