package budget

import (
	"fmt"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BenchmarkChanges asks what would have a Run paid for among a thousand owners who lend.
func BenchmarkChanges(b *testing.B) {
	all := []standing{lot("r", "o:r", 8, 8)}
	for i := range 1000 {
		name := fmt.Sprint("l", i)
		all = append(all, lot(name, rqv1.Owner(name), 8, i%9, lendsUpTo(8, "*")))
	}
	a := standings(all)
	ask := Ask{Owner: "o:r", Flavor: "H100", GPUsPerPod: 8, Run: "run"}
	for b.Loop() {
		a.Changes(ask, 64, noon)
	}
}
