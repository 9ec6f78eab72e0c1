package resolver

import (
	"flag"
	"os"
	"testing"
)

// TestMain has property tests try thousands of cases, unless the command line says how many.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
