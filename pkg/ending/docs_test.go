package ending

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheSignsAreListed compares the table of the docs with the signs that are judged by.
func TestTheSignsAreListed(t *testing.T) {
	text, err := os.ReadFile("../../docs/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for i := range Signs {
		s := &Signs[i]
		fmt.Fprintf(&table, "| %s | `%s` | %s | %s |\n", s.Place, s.Word, s.Cause, s.From)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/failures.md lacks this table:\n%s", table.String())
	}
}
