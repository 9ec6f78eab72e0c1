package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLocalTimes has people be told instants by their own clock, with the date where it is not today's.
func TestLocalTimes(t *testing.T) {
	west := time.FixedZone("PST", -8*3600)
	now := time.Date(2030, 1, 1, 20, 0, 0, 0, west) // in UTC it is tomorrow
	for text, want := range map[string]string{
		"starts 2030-01-02T04:10:00Z (in 10m)":                   "starts 20:10 (in 10m)",
		"from 2030-01-02T08:30:00.5Z to 2031-02-03T00:00:00Z":    "from Jan 2 00:30 to Feb 2 2031 16:00",
		"a date 2030-01-02 and 2030-99-02T08:30:00Z stay as is.": "a date 2030-01-02 and 2030-99-02T08:30:00Z stay as is.",
		"is no time: write it as 2030-01-02T15:00:00Z":           "is no time: write it as 2030-01-02T15:00:00Z",
	} {
		if diff := cmp.Diff(want, LocalTimes(text, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if diff := cmp.Diff("20:00:07", ClockToSecond(now.Add(7*time.Second).UTC(), now)); diff != "" {
		t.Error(diff)
	}
}
