// Package workloads holds the scheduling workloads that test/perf measures. They run on the upstream scheduler_perf
// library: an API server and a scheduler in this process, etcd beside it, Nodes without kubelets. BenchmarkStock runs
// them with the default scheduler on pods and PodGroups; BenchmarkJobtree with the jobtree plugin on Budgets and Runs.
//
// Both are timed in the same way, by one watch on the pods: from the first object that asks for pods (a Run, or for the
// default scheduler the first pod; its PodGroups exist before) to the bind of the last pod.
package workloads
