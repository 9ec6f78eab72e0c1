package v1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// People write days and weeks, alone and before what Go reads.
func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "0d": 0, "1.5h": 90 * time.Minute, "-1m": -time.Minute,
		"3d": 3 * day, "1w": 7 * day, "1w2d": 9 * day, "1d12h": day + 12*time.Hour, "2w30m": 14*day + 30*time.Minute,
	} {
		got, err := rqv1.ParseDuration(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "d", "3", "2 hours", "3D", "1d2w", "1d-1h", "1d+1h", "-1d", "1.5d", "99999w", "1d99999999h"} {
		if got, err := rqv1.ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
