// Package audit checks from API objects alone what always holds of Runs, GPU leases and Budgets: the invariants I1 to
// I12, and the records of lotteries (R21). It is pure: it sees objects as they were read, and is told what time it is.
//
// Objects of several kinds cannot be read in one instant, and what spans two of them is written one after the other. So
// one look proves nothing: a finding stands when two looks, seconds apart, have it. A state that may last for longer
// than that, such as a gang that is starting, is known by what else says so, and is no finding.
package audit
