// Package payflow decides which offers pay for which pods. Offers come in the order in which they are to pay; each is
// under some limits, which it may share with others. Pods come in classes, and an offer pays for some classes alone.
// Among all the ways to pay for everything, the best has the first offer pay as much as it can, then the second, and so
// on.
//
// It is a max-flow problem. Flows that are augmented offer by offer answer most questions (flow.go). Where limits are
// shared, a network of offers under a tree of limits is solved by shortest augmenting paths, Edmonds–Karp (network.go,
// tree.go), and limits that cut across the tree are met by branch and bound, in a bounded number of steps (exact.go).
package payflow
