package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/test/perf/rebind"
)

func TestAddRatios(t *testing.T) {
	results := []result{
		{Case: "Pods/3000x1", Scheduler: stock, Seconds: 20, PodsPerSecond: 150},
		{Case: "Gangs/a", Scheduler: stock, Seconds: 100, PodsPerSecond: 30},
		{Case: "Gangs/a", Scheduler: jobtree, Seconds: 10, PodsPerSecond: 300},
		{Case: "Gangs/b", Scheduler: jobtree, Seconds: 10, PodsPerSecond: 75},
	}
	addRatios(results)
	want := []result{
		{Case: "Pods/3000x1", Scheduler: stock, Seconds: 20, PodsPerSecond: 150, RatioToStock: 1, RatioToSinglePods: 1},
		{Case: "Gangs/a", Scheduler: stock, Seconds: 100, PodsPerSecond: 30, RatioToStock: 1, RatioToSinglePods: 0.2},
		{Case: "Gangs/a", Scheduler: jobtree, Seconds: 10, PodsPerSecond: 300, RatioToStock: 10, RatioToSinglePods: 2},
		{Case: "Gangs/b", Scheduler: jobtree, Seconds: 10, PodsPerSecond: 75, RatioToSinglePods: 0.5},
	}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
}

func TestReadResult(t *testing.T) {
	const library = `{"version": "v1", "dataItems": [
		{"data": {"Average": 250, "Perc50": 200}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput"}},
		{"data": {"Perc99": 7}, "labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds", "result": "error"}},
		{"data": {"Perc99": 3}, "labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds",
			"result": "scheduled"}}]}`
	for name, tc := range map[string]struct {
		files map[string]string
		want  result
		err   string
	}{
		"complete": {
			files: map[string]string{"whole.json": `{"pods": 3000, "seconds": 12, "cpuSeconds": 20}`,
				"BenchmarkStock_x.json": library},
			want: result{Case: "Gangs/a", Scheduler: stock, Pods: 3000, Seconds: 12, CPUSeconds: 20, PodsPerSecond: 250,
				ThroughputAverage: 250, AttemptP99Milliseconds: 3},
		},
		"no such workload":         {err: "did not run"},
		"nothing from the library": {files: map[string]string{"whole.json": `{"pods": 1, "seconds": 1}`}, err: "0 files"},
		"garbage from the library": {files: map[string]string{"whole.json": `{"pods": 1, "seconds": 1}`,
			"Benchmark.json": "?"}, err: "invalid character"},
		"garbage from the workload": {files: map[string]string{"whole.json": "?"}, err: "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readResult(dir, "Gangs/a", stock)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one that says %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseBenchmarks(t *testing.T) {
	const out = `goos: linux
goarch: amd64
pkg: example.org/m/pkg/topology
BenchmarkPack/1000-pods-2         	     120	   9876543 ns/op	  654321 B/op	     210 allocs/op
PASS
ok  	example.org/m/pkg/topology	2.1s
pkg: example.org/m/pkg/budget
BenchmarkCover 	 1000000	       901.5 ns/op	     128 B/op	       2 allocs/op
PASS
`
	want := []result{
		{Case: "Planner/topology/Pack/1000-pods", Scheduler: jobtree, NanosecondsPerOp: 9876543, BytesPerOp: 654321,
			AllocsPerOp: 210},
		{Case: "Planner/budget/Cover", Scheduler: jobtree, NanosecondsPerOp: 901.5, BytesPerOp: 128, AllocsPerOp: 2},
	}
	if diff := cmp.Diff(want, parseBenchmarks([]byte(out))); diff != "" {
		t.Error(diff)
	}
}

func TestPrintTable(t *testing.T) {
	var got bytes.Buffer
	printTable(&got,
		[]result{
			{Case: "Gangs/a", Scheduler: stock, Pods: 3000, Seconds: 24.8, CPUSeconds: 41.5, PodsPerSecond: 120.97,
				RatioToStock: 1, AttemptP99Milliseconds: 4.5},
			{Case: "Gangs/a", Scheduler: jobtree, Pods: 3000, Seconds: 10, PodsPerSecond: 300, RatioToStock: 2.48},
		},
		[]result{{Case: "Planner/budget/Cover", Scheduler: jobtree, NanosecondsPerOp: 901.5, BytesPerOp: 128,
			AllocsPerOp: 2}}, nil)
	const want = `     case  scheduler  pods  seconds  cpu s  pods/s  x stock  x Runs  x single pods  attempt p99 ms
  Gangs/a      stock  3000    24.80  41.50  120.97     1.00       -              -            4.50
  Gangs/a    jobtree  3000    10.00      -  300.00     2.48       -              -               -

               planner           ns/op  B/op  allocs/op
  Planner/budget/Cover  jobtree    902   128          2
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPrintCommands(t *testing.T) {
	var got bytes.Buffer
	printCommands(&got, []result{{Case: "Commands/1000/list", Scheduler: jobtree, CPUSeconds: 0.068,
		Distribution: &rebind.Distribution{Samples: 20, Min: 0.15, P50: 0.2, P99: 0.25, Max: 0.25, Target: 0.3}}})
	const want = `
  milliseconds of a command  samples  min  p50  p99  its own cpu  target for p99
         Commands/1000/list       20  150  200  250           68         300 met
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}
