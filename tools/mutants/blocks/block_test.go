package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const code = `package p

func F(x int) int {
	if x > 1 {
		return 1
	}
	return 2
}
`

// moved is the same code elsewhere in the file, but for its last block.
const moved = `package p

// G is new.
func G() {}

func F(x int) int {
	if x > 1 {
		return 1
	}
	return 3
}
`

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCompare has a block be covered by one of two profiles at first, and by none when it has moved.
func TestCompare(t *testing.T) {
	root := t.TempDir()
	write(t, root, "go.mod", "module example.com/m\n")
	write(t, root, "pkg/p/p.go", code)
	var then []*block
	for name, profile := range map[string]string{
		"real": "mode: set\nexample.com/m/pkg/p/p.go:3.19,4.11 1 1\nexample.com/m/pkg/p/p.go:4.11,6.3 1 1\n",
		"units": "mode: set\nexample.com/m/pkg/p/p.go:3.19,4.11 1 1\nexample.com/m/pkg/p/p.go:7.2,7.10 1 1\n" +
			"other/o.go:1.1,2.2 1 1\n",
	} {
		var err error
		if then, err = merge(then, root, name, profile); err != nil {
			t.Fatal(err)
		}
	}
	want := []*block{
		{File: "pkg/p/p.go", Line: 3, Function: "F", Text: "{ if x > 1", By: []string{"real", "units"}},
		{File: "pkg/p/p.go", Line: 4, Function: "F", Text: "{ return 1 }", By: []string{"real"}},
		{File: "pkg/p/p.go", Line: 7, Function: "F", Text: "return 2", By: []string{"units"}},
	}
	if diff := cmp.Diff(want, then); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	write(t, root, "pkg/p/p.go", moved)
	now, err := merge(nil, root, "units", "mode: set\nexample.com/m/pkg/p/p.go:4.10,4.12 0 0\n"+
		"example.com/m/pkg/p/p.go:6.19,7.11 1 1\nexample.com/m/pkg/p/p.go:7.11,9.3 1 0\n"+
		"example.com/m/pkg/p/p.go:10.2,10.10 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	text, lost := compare(then, now)
	said := "pkg/p/p.go:7 F: covered before by real, by nothing now: { return 1 }\n" +
		"pkg/p/p.go F: covered before, and the code is no more: return 2\n" +
		"1 blocks that were covered before are covered by nothing now, 1 are no more\n"
	if diff := cmp.Diff(said, text); diff != "" || lost != 1 {
		t.Errorf("lost %d (-want +got):\n%s", lost, diff)
	}
}

// TestProfileOfOtherCode is refused.
func TestProfileOfOtherCode(t *testing.T) {
	for _, profile := range []string{"mode: set\nnonsense\n", "mode: set\nexample.com/m/pkg/p/p.go:3.x,4.11 1 1\n"} {
		root := t.TempDir()
		write(t, root, "go.mod", "module example.com/m\n")
		if _, err := merge(nil, root, "units", profile); err == nil {
			t.Errorf("%q is taken for a profile", profile)
		}
	}
}
