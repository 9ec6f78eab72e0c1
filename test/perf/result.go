package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/davidlangworthy/jobtree/test/perf/backlog"
	"github.com/davidlangworthy/jobtree/test/perf/rebind"
)

// result is one row of the table: a workload under one scheduler or, with the figures per operation only, one of the
// planner's Go benchmarks or, with a distribution only, how long lost ranks were without a node. What was not measured
// is left out.
type result struct {
	Case      string `json:"case"`
	Scheduler string `json:"scheduler"`
	Pods      int    `json:"pods,omitempty"`
	// Seconds is the whole duration, from the first Run (stock: the first pod) to the last bind.
	Seconds float64 `json:"seconds,omitempty"`
	// CPUSeconds is the processor time that scheduler and API server spent in that time. It tells a slow scheduler from a
	// machine that was busy with something else.
	CPUSeconds    float64 `json:"cpuSeconds,omitempty"`
	PodsPerSecond float64 `json:"podsPerSecond,omitempty"`
	// RatioToStock is the default scheduler's whole duration in the same case over this one: above 1 is faster.
	RatioToStock float64 `json:"ratioToStock,omitempty"`
	// RatioToRuns is the duration of the same case with Runs over this one, of pods that no Run has made.
	RatioToRuns float64 `json:"ratioToRuns,omitempty"`
	// RatioToSinglePods is this pod rate over the default scheduler's on pods that form no gang.
	RatioToSinglePods float64 `json:"ratioToSinglePods,omitempty"`
	// ThroughputAverage is the library's own figure, in pods/s: the mean over seconds in which pods were bound.
	ThroughputAverage float64 `json:"throughputAverage,omitempty"`
	// AttemptP99Milliseconds is how long a pod's scheduling attempt took, Permit's wait apart, in 99 of 100 cases.
	AttemptP99Milliseconds float64 `json:"attemptP99Milliseconds,omitempty"`

	NanosecondsPerOp float64 `json:"nsPerOp,omitempty"`
	BytesPerOp       float64 `json:"bytesPerOp,omitempty"`
	AllocsPerOp      float64 `json:"allocsPerOp,omitempty"`

	*rebind.Distribution
	Backlog *backlog.Outcome   `json:"backlog,omitempty"`
	Crowd   *rebind.CrowdCosts `json:"crowd,omitempty"`
	*Past
}

// addLibraryFigures takes what scheduler_perf measured itself from the file that it wrote.
func (r *result) addLibraryFigures(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var figures struct {
		DataItems []struct {
			Data   map[string]float64
			Labels map[string]string
		}
	}
	if err := json.Unmarshal(data, &figures); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, item := range figures.DataItems {
		switch {
		case item.Labels["Metric"] == "SchedulingThroughput":
			r.ThroughputAverage = item.Data["Average"]
		case item.Labels["Metric"] == "scheduler_scheduling_attempt_duration_seconds" && item.Labels["result"] == "scheduled":
			r.AttemptP99Milliseconds = item.Data["Perc99"]
		}
	}
	return nil
}

// addRatios compares the rows with the default scheduler's of the same run. A row without its counterpart gets none.
func addRatios(results []result) {
	seconds, ofRuns := map[string]float64{}, map[string]float64{}
	var singlesRate float64
	for _, r := range results {
		if r.Scheduler == jobtree {
			ofRuns[r.Case] = r.Seconds
		}
		if r.Scheduler != stock {
			continue
		}
		seconds[r.Case] = r.Seconds
		if strings.HasPrefix(r.Case, singles) {
			singlesRate = r.PodsPerSecond
		}
	}
	for i := range results {
		r := &results[i]
		r.RatioToStock = seconds[r.Case] / r.Seconds
		if r.Scheduler == foreign {
			r.RatioToRuns = ofRuns[r.Case] / r.Seconds
		}
		if singlesRate > 0 {
			r.RatioToSinglePods = r.PodsPerSecond / singlesRate
		}
	}
}
