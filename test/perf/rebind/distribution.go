package rebind

import (
	"math"
	"slices"
	"time"
)

// Distribution is what the samples of one case come to, in seconds.
type Distribution struct {
	Samples int     `json:"samples"`
	Min     float64 `json:"minSeconds"`
	P50     float64 `json:"p50Seconds"`
	P90     float64 `json:"p90Seconds"`
	P99     float64 `json:"p99Seconds"`
	Max     float64 `json:"maxSeconds"`
	// Target is what P99 is to stay below; 0 for a figure that has no target of its own.
	Target float64 `json:"targetSeconds,omitempty"`
}

// Met reports whether the target is met; a case without samples meets none.
func (d *Distribution) Met() bool { return d.Samples > 0 && d.P99 < d.Target }

// Case is a distribution with its name.
type Case struct {
	Name string
	Distribution
}

// Distribute returns the distribution of samples.
func Distribute(samples []time.Duration, target time.Duration) Distribution {
	d := Distribution{Samples: len(samples), Target: target.Seconds()}
	if len(samples) == 0 {
		return d
	}
	sorted := slices.Sorted(slices.Values(samples))
	d.Min, d.Max = sorted[0].Seconds(), sorted[len(sorted)-1].Seconds()
	d.P50, d.P90, d.P99 = percentile(sorted, 0.5), percentile(sorted, 0.9), percentile(sorted, 0.99)
	return d
}

// percentile returns the smallest sample that a share of them does not exceed: nothing is interpolated, so that the
// 99th of few samples is their largest.
func percentile(sorted []time.Duration, share float64) float64 {
	return sorted[int(math.Ceil(share*float64(len(sorted))))-1].Seconds()
}
