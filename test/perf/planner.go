package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// plannerCase begins the name of every one of the planner's benchmarks.
const plannerCase = "Planner/"

// plannerPackages hold the code whose own time and allocations are shown under the table.
var plannerPackages = []string{"./pkg/topology", "./pkg/budget", "./pkg/plan", "./pkg/resolver", "./pkg/book",
	"./pkg/plugins", "./pkg/controllers"}

// plannerBenchmarks runs the planner's Go benchmarks, unless the filter leaves them out.
func plannerBenchmarks(ctx context.Context, benchtime string, selected *regexp.Regexp) ([]result, error) {
	if !selected.MatchString(plannerCase) {
		return nil, nil
	}
	fmt.Fprintln(os.Stderr, "perf: planner")
	args := append([]string{"test", "-run=^$", "-bench=.", "-benchmem", "-benchtime=" + benchtime}, plannerPackages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("planner benchmarks: %w\n%s", err, out)
	}
	results := parseBenchmarks(out)
	if len(results) == 0 {
		return nil, fmt.Errorf("no benchmarks in %s", strings.Join(plannerPackages, ", "))
	}
	return results, nil
}

// parseBenchmarks reads the output of go test -bench: a line "pkg: PATH" before each package's lines of the form
// "BenchmarkName-CPUS iterations value unit value unit ...".
func parseBenchmarks(out []byte) []result {
	var results []result
	var pkg string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			pkg = path.Base(name)
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		units := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			units[fields[i+1]], _ = strconv.ParseFloat(fields[i], 64)
		}
		results = append(results, result{
			Case:             plannerCase + pkg + "/" + benchmarkName(fields[0]),
			Scheduler:        jobtree,
			NanosecondsPerOp: units["ns/op"],
			BytesPerOp:       units["B/op"],
			AllocsPerOp:      units["allocs/op"],
		})
	}
	return results
}

// benchmarkName drops the prefix Benchmark and the number of CPUs.
func benchmarkName(s string) string {
	name := strings.TrimPrefix(s, "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i]
		}
	}
	return name
}
