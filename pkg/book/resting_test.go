package book_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// A promise rests on who goes for a Run that it names, and on what the promises of those rest on that it names.
func TestWhosePromiseRestsOnWhom(t *testing.T) {
	for name, c := range map[string]struct {
		after map[string][]string
		want  []string
	}{
		"nobody's":         {map[string][]string{"a": nil, "b": {"a"}}, nil},
		"one's":            {map[string][]string{"a": {"x"}, "b": {"c"}, "c": nil}, []string{"a"}},
		"by way of others": {map[string][]string{"a": {"x"}, "b": {"z", "a"}, "c": {"b"}}, []string{"a", "b", "c"}},
		"by two ways":      {map[string][]string{"a": {"x"}, "b": {"x"}, "c": {"a", "b"}}, []string{"a", "b", "c"}},
		"who rest on each other": {map[string][]string{"a": {"b"}, "b": {"a", "x"}, "c": {"d"}, "d": {"c"}},
			[]string{"a", "b"}},
		"whose own rests on it":   {map[string][]string{"x": {"a"}, "a": {"x"}}, []string{"a", "x"}},
		"of one that has no date": {map[string][]string{"b": {"a"}, "c": {"b"}}, nil},
	} {
		if diff := cmp.Diff(c.want, book.RestingOn(c.after, "x")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BenchmarkRestingOn has as many Runs as a forecast looks at, each of which is promised to start after all before it,
// and one that none of them rests on.
func BenchmarkRestingOn(b *testing.B) {
	after, all := map[string][]string{}, []string(nil)
	for i := range 64 {
		name := fmt.Sprint("run", i)
		after[name], all = all[:i:i], append(all, name)
	}
	for b.Loop() {
		if len(book.RestingOn(after, "last")) > 0 {
			b.Fatal("it rests on the last")
		}
	}
}
