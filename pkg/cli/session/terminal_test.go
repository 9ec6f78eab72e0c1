package session_test

import (
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestFit(t *testing.T) {
	for text, want := range map[string]string{
		"abcde\n":             "abcde\n",
		"abcdef\nab\n":        "abcd…\nab\n",
		"ééééé\nüüüüüü\nlast": "ééééé\nüüüü…\nlast",
		"":                    "",
	} {
		if got := string(session.Fit([]byte(text), 5)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := string(session.Fit([]byte(text), 0)); got != text {
			t.Errorf("%q becomes %q where there is no end", text, got)
		}
	}
}
