package story_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme asserts that the example of test/README.md is in the tree as it stands there.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, marked := strings.Cut(string(page), "<!-- story: ")
	_, rest, fenced := strings.Cut(rest, "```go\n")
	example, _, closed := strings.Cut(rest, "```\n")
	if !marked || !fenced || !closed {
		t.Fatal("test/README.md has no example")
	}
	files, err := filepath.Glob("told_*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), example) {
			return
		}
	}
	t.Errorf("no file here has the example of test/README.md:\n%s", example)
}
