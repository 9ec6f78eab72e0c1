// Package zoo has workloads as people have them, each in a file of workloads with nothing in it that is for jobtree;
// what their controllers make of them is in the table of kinds. Stories tell what each goes through, on any cluster.
package zoo
