// Package resolver decides what is cut so that a Run with a Reservation starts: structural cuts first, then a lottery
// that anyone can re-run and check (rules R19 to R21).
//
// It is pure: no clock, no randomness, no API client. Draws follow from a nonce and from what was published.
package resolver
