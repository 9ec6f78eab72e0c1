package book

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRoundOfManyCrowds looks at those who wait, of whom no two want the same, and whom nothing helps: it is done
// under the lock, at each plan and with all that comes free.
func BenchmarkRoundOfManyCrowds(b *testing.B) {
	for _, n := range []int{300, 3000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := &waitlist{crowds: map[crowdKey]*crowd{}}
			for i := range n {
				g := &gang{place: spot{since: time.Unix(int64(i*7919%n), 0), name: fmt.Sprint(i)}}
				c := &crowd{crowdKey: crowdKey{flavor: fmt.Sprint(i)}, line: line{g}}
				w.crowds[c.crowdKey] = c
			}
			for b.Loop() {
				w.wakeNext()
			}
		})
	}
}
