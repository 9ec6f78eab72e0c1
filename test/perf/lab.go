package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// workloadsDir holds the benchmarks and, beside them, the files that they read.
const workloadsDir = "test/perf/workloads"

// benchmarkOf names the Go benchmark that runs a scheduler's workloads.
var benchmarkOf = map[string]string{stock: "BenchmarkStock", jobtree: "BenchmarkJobtree", foreign: "BenchmarkForeign"}

// lab runs workloads, each in a child process.
type lab struct {
	size    string
	binary  string
	scratch string
	logs    string
}

// newLab builds the benchmarks once, for all children.
func newLab(ctx context.Context, size, logs string) (*lab, error) {
	scratch, err := os.MkdirTemp("", "jobtree-perf-")
	if err != nil {
		return nil, err
	}
	l := &lab{size: size, binary: filepath.Join(scratch, "workloads.test"), scratch: scratch, logs: logs}
	fmt.Fprintln(os.Stderr, "perf: building the workloads (minutes the first time)")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", l.binary, "./"+workloadsDir)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		l.close()
		return nil, fmt.Errorf("building %s: %w", workloadsDir, err)
	}
	return l, nil
}

func (l *lab) close() { _ = os.RemoveAll(l.scratch) }

// measureAll measures workloads one after the other and goes on after one that fails.
func measureAll(ctx context.Context, size, logs string, workloads []workload) (results []result, errs []error) {
	if len(workloads) == 0 {
		return nil, nil
	}
	l, err := newLab(ctx, size, logs)
	if err != nil {
		return nil, []error{err}
	}
	defer l.close()
	for _, w := range workloads {
		for _, scheduler := range w.schedulers {
			fmt.Fprintf(os.Stderr, "perf: %s, %s\n", w.name, scheduler)
			r, err := l.measure(ctx, w.name, scheduler)
			if ctx.Err() != nil {
				return results, append(errs, ctx.Err())
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, %s: %w", w.name, scheduler, err))
				continue
			}
			results = append(results, r)
		}
	}
	return results, errs
}

// measure runs one workload under one scheduler. The child's files all lie in a directory of its own, and its process
// group dies with it, so that a run that is broken off leaves no etcd behind.
func (l *lab) measure(ctx context.Context, name, scheduler string) (result, error) {
	dir, err := os.MkdirTemp(l.scratch, "run-")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	logName := filepath.Join(l.logs, strings.ReplaceAll(name, "/", "-")+"-"+scheduler+".log")
	log, err := os.Create(logName)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = log.Close() }()
	child := exec.CommandContext(ctx, l.binary, childArgs(name, scheduler, l.size, dir)...)
	child.Dir = workloadsDir
	child.Env = append(os.Environ(), "TMPDIR="+dir, "PATH="+pathWithBin())
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGTERM) }
	if err := child.Run(); err != nil {
		return result{}, fmt.Errorf("%w; see %s", err, logName)
	}
	return readResult(dir, name, scheduler)
}

func childArgs(name, scheduler, size, dir string) []string {
	group, shape, _ := strings.Cut(name, "/")
	return []string{
		"-test.run=^$", "-test.benchtime=1x", "-test.timeout=0",
		fmt.Sprintf("-test.bench=^%s$/^%s$/^%s$", benchmarkOf[scheduler], group, shape),
		"-perf-scheduling-label-filter=" + size,
		"-data-items-dir=" + dir,
	}
}

// pathWithBin puts the repository's own etcd first.
func pathWithBin() string {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return os.Getenv("PATH")
	}
	return bin + string(os.PathListSeparator) + os.Getenv("PATH")
}

// readResult reads what a child wrote: its own whole.json, and the library's file for the throughput.
func readResult(dir, name, scheduler string) (result, error) {
	data, err := os.ReadFile(filepath.Join(dir, "whole.json"))
	if err != nil {
		return result{}, fmt.Errorf("the workload did not run: %w", err)
	}
	r := result{Case: name, Scheduler: scheduler}
	if err := json.Unmarshal(data, &r); err != nil {
		return result{}, err
	}
	r.PodsPerSecond = float64(r.Pods) / r.Seconds
	files, err := filepath.Glob(filepath.Join(dir, "Benchmark*.json"))
	if err != nil || len(files) != 1 {
		return result{}, fmt.Errorf("the library wrote %d files of figures, not 1", len(files))
	}
	return r, r.addLibraryFigures(files[0])
}
