package lifecycle

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestShortened shortens texts at the edge of a character.
func TestShortened(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"12345678", "12345678"}, {"123456789", "12345…"}, {"1234ö6789", "1234…"}, {"123ö6789", "123ö…"},
	} {
		if got := Shortened(c.text, 8); got != c.want {
			t.Errorf("%q is shortened to %q, want %q", c.text, got, c.want)
		}
	}
}

// TestALongProblemIsTold: the API refuses the whole status for one message that is too long.
func TestALongProblemIsTold(t *testing.T) {
	o := scene(nil)
	o.Problem = "the API server rejects the Run's pods: " + strings.Repeat("é=", 20000)
	status := Decide(o).Status
	c := meta.FindStatusCondition(status.Conditions, rqv1.ConditionStarted)
	if n := utf8.RuneCountInString(c.Message); n > longestMessage || c.Message != status.Message {
		t.Errorf("a message of %d characters: %.60s", n, c.Message)
	}
}
