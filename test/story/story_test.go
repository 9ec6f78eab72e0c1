package story_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/sim"
	"github.com/davidlangworthy/jobtree/test/story"
	"github.com/davidlangworthy/jobtree/test/story/simulated"
)

// crashes is how often the process dies in a story that is told again, each time another story.
const crashes = 5

// TestStories tells all stories on the simulated cluster. It tells each of them again with a process that dies at a
// write, early or late: another goes on, and nobody sees more of it.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, s := range story.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := simulated.New(t, &s)
			story.Tell(t, c, &s)
			for i := 0; i < crashes && s.Forgets == ""; i++ {
				at := c.Writes * (2*i + 1) / (2 * crashes)
				t.Run(fmt.Sprintf("dies-at-write-%d", at), func(t *testing.T) {
					again := simulated.New(t, &s)
					again.Faults.Add(sim.Fault{Of: sim.All, After: at, Do: sim.Crash})
					story.Tell(t, again, &s)
				})
			}
		})
	}
}

// TestNames asserts that stories can be told apart, and named in a regular expression.
func TestNames(t *testing.T) {
	known := map[string]bool{}
	for _, s := range story.All() {
		if known[s.Name] || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(s.Name) || len(s.Name) > 40 {
			t.Errorf("%q is no name for a story", s.Name)
		}
		known[s.Name] = true
	}
}
