// Package lifecycle decides what a Run needs next: which pods to create and delete, which Leases to close, and what its
// status says. It is pure: it sees what has been observed and returns a decision, and deciding again on the same
// observation gives the same decision.
//
// A decision is worked out in steps, each a small value that nothing changes afterwards: the observation by pod
// (facts), what is cut (cuts), how wide the Run may be (width), its pods by part at that width (roster), what makes up
// for lost ranks (swaps), and the phase that all this has brought it to (situation). Deletions, new pods, closed Leases
// and the status are read off the situation.
package lifecycle
