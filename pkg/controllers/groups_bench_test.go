package controllers

import (
	"fmt"
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// BenchmarkLookAgain is what it costs to take up one of many groups that wait, of 50 namespaces, and to have it looked
// at again: beside its namespace's others that stand aside.
func BenchmarkLookAgain(b *testing.B) {
	for _, waiting := range []int{3000, 30000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l := newGroupLine()
			defer l.shutDown()
			for i := range waiting {
				l.add(group.Key{Namespace: fmt.Sprint("ns-", i%50), Kind: "Pod", Name: fmt.Sprint(i)}, lane.Begin, 0)
			}
			for b.Loop() {
				key, _ := l.next()
				l.done(key)
				l.add(key, lane.Begin, 0)
			}
		})
	}
}
