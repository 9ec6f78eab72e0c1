package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRules holds docs/rules.md against the rules that the code cites: each has a section, with an example.
func TestRules(t *testing.T) {
	sections := map[string]bool{}
	for _, section := range strings.Split(read(t, "docs/rules.md"), "\n### ")[1:] {
		rule, _, _ := strings.Cut(section, ":")
		if sections[rule] = true; strings.Count(section, "*Example:*") != 1 {
			t.Errorf("%s has no example, or several", rule)
		}
	}
	citation := regexp.MustCompile(`\bR[1-9]\d?\b`)
	for _, dir := range []string{"cmd", "pkg", "manifests"} {
		if err := filepath.WalkDir(filepath.Join(checkout(t), dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".yaml") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, rule := range citation.FindAllString(string(text), -1) {
				if !sections[rule] {
					t.Errorf("%s cites %s, which docs/rules.md does not have", path, rule)
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
