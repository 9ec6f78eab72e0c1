package topology

// Purse bounds what can be paid for (R3). The cover planner implements it; a nil Purse pays for everything.
type Purse interface {
	// Class is the payer class of nodes with these labels, of which only the selector keys are given: nodes of one class
	// can be paid for by the same envelopes. Classes are small numbers from 0; a negative one says that nobody pays there.
	// Pack calls it at most once for each distinct label set, and keeps no reference to labels.
	Class(labels map[string]string) int
	// Covers says whether demand[c] pods on nodes of each class c can all be paid for at once. It is monotone: whatever
	// is covered stays covered when any of the numbers goes down. It keeps no reference to demand.
	Covers(demand []int) bool
}
