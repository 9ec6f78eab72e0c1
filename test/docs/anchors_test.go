package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAnchors follows every link into a page of the documentation to its heading.
func TestAnchors(t *testing.T) {
	root := checkout(t)
	anchors, texts := map[string]map[string]bool{}, map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/cli/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file], anchors[file] = string(data), anchorsOf(string(data))
		}
	}
	link := regexp.MustCompile(`\]\(([^)#:\s]*)#([^)]*)\)`)
	for file, text := range texts {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			page := file
			if match[1] != "" {
				page = filepath.Join(filepath.Dir(file), match[1])
			}
			if known := anchors[page]; known != nil && !known[match[2]] {
				t.Errorf("%s: %s#%s leads to no heading", file, match[1], match[2])
			}
		}
	}
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them, and those that the page has set itself. Of
// equal headings only the first is known: a link to another one would break when the first is renamed.
func anchorsOf(markdown string) map[string]bool {
	out, fenced := map[string]bool{}, false
	dropped, linked := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`), regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	for line := range strings.SplitSeq(markdown, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		heading := strings.TrimLeft(line, "#")
		if fenced || heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		heading = strings.ToLower(strings.TrimSpace(linked.ReplaceAllString(heading, "$1")))
		out[strings.ReplaceAll(dropped.ReplaceAllString(heading, ""), " ", "-")] = true
	}
	for _, match := range regexp.MustCompile(`(?:id|name)="([^"]+)"`).FindAllStringSubmatch(markdown, -1) {
		out[match[1]] = true
	}
	return out
}
