// Package ending judges how a pod of a Run ended, and by whose doing (R33): by what Kubernetes writes on the pod, and
// nothing else.
package ending
