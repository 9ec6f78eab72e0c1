package session_test

import (
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestNearest(t *testing.T) {
	types := []string{"A100", "H100-80GB", "H200", "org:ai:rai"}
	for word, want := range map[string]string{
		"h100-80gb": "H100-80GB", "H100": "H100-80GB", "H10080GB": "H100-80GB", "A10": "A100", "H100-80GB": "", "TPU-v5": "",
		"org:ai:ria": "org:ai:rai", "": "", "gpu": "",
	} {
		if got := session.Nearest(word, types); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}
