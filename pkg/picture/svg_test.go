package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// wellFormed fails the test if a text is no XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
	}
}

func TestTheFleetAsAnImage(t *testing.T) {
	nodes := picture.FleetAt(sample(), defaults(t), noon, true)
	letters := &picture.Letters{}
	owners := map[string]string{}
	for _, h := range picture.Holders(nodes) {
		letters.Add(h.Run)
		owners[h.Run] = "org:<" + h.Run[:4]
	}
	text := picture.FleetSVG(nodes, letters, owners)
	wellFormed(t, text)
	clitest.Golden(t, "fleet-svg", text)
}

func TestTimeAsAnImage(t *testing.T) {
	bars := picture.Timeline(story(), defaults(t), picture.ByDomain, noon.Add(-3*time.Hour), noon.Add(6*time.Hour), noon)
	text := picture.TimeSVG(bars, noon.Add(-3*time.Hour), noon.Add(6*time.Hour), noon)
	wellFormed(t, text)
	clitest.Golden(t, "time-svg", text)
}
