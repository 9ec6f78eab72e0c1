// Package suspicion judges which nodes are suspect (R34): ranks do not live there, although nothing says that the node
// is lost. They are avoided where there is a choice.
package suspicion
