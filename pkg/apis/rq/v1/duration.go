package v1

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// longForm is a duration that begins with weeks or days.
var longForm = regexp.MustCompile(`^(?:([0-9]{1,5})w)?(?:([0-9]{1,5})d)?(.*)$`)

// ParseDuration reads a duration as people write it: 90s, 90m or 36h, and 3d or 1w, of 24 hours and of 7 days, also
// together, such as 1w2d12h. It may be negative only without days and weeks. The error says what to write instead.
func ParseDuration(text string) (time.Duration, error) {
	parts := longForm.FindStringSubmatch(text)
	total := 0.0
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour} {
		if n, err := strconv.ParseFloat(parts[i+1], 64); err == nil {
			total += n * float64(unit)
		}
	}
	rest, err := time.Duration(0), error(nil)
	long := parts[3] != text
	if parts[3] != "" || !long {
		rest, err = time.ParseDuration(parts[3])
	}
	switch {
	case err != nil, long && strings.HasPrefix(parts[3], "-"), long && strings.HasPrefix(parts[3], "+"):
		return 0, fmt.Errorf("%q is not a duration, such as 90m, 36h, 3d or 1w", text)
	case total+float64(rest) >= math.MaxInt64:
		return 0, fmt.Errorf("%q is longer than 292 years", text)
	}
	return time.Duration(total) + rest, nil
}
