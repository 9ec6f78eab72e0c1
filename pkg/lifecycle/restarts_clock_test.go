package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/ending"
)

// TestNobodyDiesInTheFuture has a kubelet's clock be ahead: what rests on the time of a death, such as how often a rank
// has died without enough quiet between, and until when a node is suspect, would have no end.
func TestNobodyDiesInTheFuture(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ at, want time.Time }{
		{now.Add(3 * time.Hour), now},
		{now.Add(-time.Minute), now.Add(-time.Minute)},
		{now.Add(-3 * time.Hour), now.Add(-time.Hour)}, // its pod was made then
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		if d := deathIn(0, pod, ending.Ending{At: c.at}, now); !d.At.Time.Equal(c.want) {
			t.Errorf("a death that is told to be of %s is of %s, want %s", c.at, d.At, c.want)
		}
	}
}
