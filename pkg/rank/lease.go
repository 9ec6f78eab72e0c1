package rank

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// LeaseName returns the name of the first Lease of a pod. It is made of the pod's name and UID, so that whoever writes
// it, and however often, it is one Lease.
func LeaseName(pod string, uid types.UID) string { return leaseName(pod, uid, "") }

// NextLeaseName returns the name of the Lease of a pod that comes after another of its: they are numbered from the
// second on.
func NextLeaseName(pod string, uid types.UID, last string) string {
	at := strings.LastIndexByte(last, '-')
	n, err := strconv.Atoi(last[at+1:])
	if last == LeaseName(pod, uid) || err != nil {
		n = 1
	}
	return leaseName(pod, uid, fmt.Sprintf("-%d", n+1))
}

func leaseName(pod string, uid types.UID, number string) string {
	of := string(uid[:min(8, len(uid))]) + number
	pod = pod[:min(len(pod), longestName-len(of)-1)] // that others have made may be called as long as anything may
	return strings.TrimRight(pod, ".-") + "-" + of
}

// longestName is how long the name of an object may be.
const longestName = 253

// Superseded is an open Lease in whose place another of its pod is open: that was written first, and the one ends as
// the other begins.
type Superseded struct{ Lease, By *rqv1.Lease }

// Standing tells Leases that count as open from those in whose place another of their pod is. Closed ones stay.
func Standing(leases []*rqv1.Lease) (standing []*rqv1.Lease, superseded []Superseded) {
	var last map[types.UID]*rqv1.Lease
	for _, lease := range leases {
		if lease.Status.Closed || lease.Spec.Reason != rqv1.ReasonRepaid {
			continue
		}
		if last == nil {
			last = map[types.UID]*rqv1.Lease{}
		}
		if other := last[lease.PodUID()]; other == nil || Supersedes(lease, other) {
			last[lease.PodUID()] = lease
		}
	}
	if last == nil {
		return leases, nil
	}
	for _, lease := range leases {
		if by := last[lease.PodUID()]; by != nil && by != lease && !lease.Status.Closed && Supersedes(by, lease) {
			superseded = append(superseded, Superseded{lease, by})
		} else {
			standing = append(standing, lease)
		}
	}
	return standing, superseded
}

// Supersedes reports whether a Lease was opened in place of another of its pod.
func Supersedes(lease, other *rqv1.Lease) bool {
	return lease.Spec.Reason == rqv1.ReasonRepaid && lease.Node() == other.Node() &&
		!lease.Spec.Start.Before(&other.Spec.Start) &&
		(other.Spec.Reason != rqv1.ReasonRepaid || !lease.Spec.Start.Equal(&other.Spec.Start))
}
