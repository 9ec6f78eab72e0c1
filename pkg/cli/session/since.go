package session

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ParseSince reads a time to look back, such as 12h or 30d, an instant or a day.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := rqv1.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, Fail(ExitUsage,
		"--since must be a time such as 12h or 30d, an instant such as 2026-01-31T00:00:00Z or a day such as 2026-01-31, "+
			"not %q", text)
}
