package workloads

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// outcome is what one workload writes to whole.json beside the library's own files, for the driver to read.
type outcome struct {
	Pods    int     `json:"pods"`
	Seconds float64 `json:"seconds"`
	// CPUSeconds is the time of this process, scheduler and API server together, on all processors.
	CPUSeconds float64 `json:"cpuSeconds"`
}

// reportAtEnd checks and reports a workload once its pods are bound, while its API server still runs.
func reportAtEnd(tCtx ktesting.TContext, s *stopwatch, checks ...func(ktesting.TContext) error) {
	b := tCtx.TB().(*testing.B)
	b.Cleanup(func() {
		if b.Failed() {
			return
		}
		if err := s.wait(tCtx, time.Minute); err != nil {
			b.Error(err)
			return
		}
		for _, check := range checks {
			if err := check(tCtx); err != nil {
				b.Error(err)
				return
			}
		}
		wall, cpu := s.elapsed()
		b.ReportMetric(wall.Seconds(), "whole_seconds")
		if err := writeOutcome(outcome{Pods: s.pods(), Seconds: wall.Seconds(), CPUSeconds: cpu.Seconds()}); err != nil {
			b.Error(err)
		}
	})
}

func writeOutcome(o outcome) error {
	dir := flag.Lookup("data-items-dir").Value.String()
	if dir == "" {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "whole.json"), data, 0o644)
}
