// Package nodeloss judges whether a node is lost (R25). It is pure: it sees what has been observed of a node, and when,
// by the clock of the one who observes; the clocks of the nodes do not matter. What is not there proves nothing: a node
// without a kubelet lease is judged by its other signs, and so is one without a condition Ready.
package nodeloss
