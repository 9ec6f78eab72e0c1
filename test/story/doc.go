// Package story tells how jobtree behaves: what people do, and what they see of it. A Story is told by a Teller, whose
// few verbs are the same wherever it is told: on a cluster in memory, where an hour takes milliseconds, or on a real
// control plane. Who writes a Story reads test/README.md first.
package story
