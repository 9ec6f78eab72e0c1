// Package topology knows the fleet and decides where pods go: it keeps the free GPUs of every node, grouped by fabric
// domain, and packs whole gangs into them (rules R11 to R14, R28, R30).
//
// It is pure: no clock, no randomness, no API client. Nothing in it is safe for concurrent use; callers lock.
package topology
