package list

import (
	"strings"
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// A terminal shows that there are no Runs: it is not wiped off again.
func TestNothingIsWatchedOnATerminal(t *testing.T) {
	said := clitest.OnTerminal(t, forgotten(t, 2), quick, 80, "", "--watch")
	at := strings.LastIndex(said.Out, "\033[2J")
	if at < 0 || !strings.HasPrefix(said.Out[at:], "\033[2JNo Runs found in namespace rai.\n") {
		t.Errorf("%q", said.Out)
	}
}
