// Package controlplane runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager, kwok in the kubelet's place, the controller of JobSets, and the jobtree scheduler, each a
// process of its own on ports of its own under 127.0.0.1. The integration tests, the demo and `make up` all use it.
//
// Everything it knows lies in one state directory, so that another process can take it over: a second Start on the same
// directory starts what is not running and leaves the rest alone, and Down ends it whoever started it.
package controlplane
