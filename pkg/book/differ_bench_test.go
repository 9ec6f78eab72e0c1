package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkKinds plans a group of pods of many kinds on 5,000 nodes: as nodes stay as they are, after one has changed,
// and after one without GPUs has. On full nodes it is planned in vain, and its date is worked out.
func BenchmarkKinds(b *testing.B) {
	for _, kinds := range []int{1, 64} {
		for _, full := range []bool{false, true} {
			f := newFleetOf(b)
			if full {
				f.fill(func(int, []*corev1.Pod) {})
			}
			f.kinds = kinds
			pods := f.run(9000, 64, nil)
			for _, changes := range []string{"nothing", "a node", "a CPU node"} {
				b.Run(fmt.Sprintf("%d/full=%v/%s changes", kinds, full, changes), func(b *testing.B) {
					longest := time.Duration(0)
					for i := 0; b.Loop(); i++ {
						node := f.node(4999, 8)
						if node.Labels["round"] = fmt.Sprint(i); changes == "a CPU node" {
							node.Name, node.Status.Allocatable = "cpu", nil
							delete(node.Labels, "gpu.flavor")
						}
						if changes != "nothing" {
							f.book.SetNode(node)
						}
						began := time.Now()
						_, refusal := f.book.Place(pods[0].UID, f.now)
						longest = max(longest, time.Since(began))
						if refusal == nil == full {
							b.Fatalf("it is refused for %v", refusal)
						}
						if full {
							f.book.Turn(pods[0].UID, f.now)
						} else {
							f.book.Unreserve(pods[0].UID, f.now)
						}
					}
					b.ReportMetric(float64(longest)/1e6, "longest-ms")
				})
			}
		}
	}
}
