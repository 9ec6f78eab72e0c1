// Package budget knows the Budgets and what is charged to them, and decides who pays (rules R1 to R9). It is pure: time
// is a parameter, and callers lock.
package budget
