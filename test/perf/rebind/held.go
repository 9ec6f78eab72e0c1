package rebind

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// shares are those of all holds of the book that are told about.
var shares = map[string]float64{"99 %": 0.99, "99.9 %": 0.999, "all": 1}

// heldWithin returns, for each share, the bound of the first bucket by which so many holds of the scheduler's book were
// over, from what it serves at /metrics. Infinity stands for more than the last bound.
func heldWithin(metrics string) (map[string]float64, error) {
	const bucket = `jobtree_book_held_seconds_bucket{le="`
	var bounds, counts []float64
	for line := range strings.SplitSeq(metrics, "\n") {
		rest, is := strings.CutPrefix(line, bucket)
		if !is {
			continue
		}
		bound, count, _ := strings.Cut(rest, `"} `)
		le, errBound := strconv.ParseFloat(bound, 64)
		n, errCount := strconv.ParseFloat(count, 64)
		if err := errors.Join(errBound, errCount); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		bounds, counts = append(bounds, le), append(counts, n)
	}
	if len(counts) == 0 {
		return nil, errors.New("the scheduler does not say for how long its book was held")
	}
	all, out := counts[len(counts)-1], map[string]float64{}
	for name, share := range shares {
		out[name] = math.Inf(1)
		for i := range bounds {
			if counts[i] >= share*all {
				out[name] = bounds[i]
				break
			}
		}
	}
	return out, nil
}
