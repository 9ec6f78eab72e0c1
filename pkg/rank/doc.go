// Package rank says what a pod is in its Run: which part it has, how it and its Lease are called, whose place it takes,
// how many GPUs it asks for, and what a cut takes from it. It is pure, and everybody above the API types shares it.
package rank
