package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memoryLimit is the most address space that the tests of a mutant may have, in KiB: one may fill any.
const memoryLimit = 10 << 20

// binary has the tests of a package, with all mutants in what they test.
type binary struct {
	// pkg is the package's path below the module's, dir its directory.
	pkg, dir, path string
	// flags are of all its runs.
	flags []string
}

// binaries finds the packages whose tests have any of the changed packages below them, and compiles what is not there.
func (s *state) binaries(ctx context.Context, patterns []string) (all []*binary, err error) {
	found, err := list(s.root, append([]string{"-test"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, m := range s.mutants {
		changed[s.module+"/"+m.Package] = true
	}
	for _, p := range found {
		path, isTest := strings.CutSuffix(p.ImportPath, ".test")
		if !isTest || !slices.ContainsFunc(p.Deps, func(d string) bool {
			d, _, _ = strings.Cut(d, " ")
			return changed[d]
		}) {
			continue
		}
		pkg := strings.TrimPrefix(path, s.module+"/")
		b := &binary{pkg: pkg, dir: filepath.Join(s.root, pkg),
			path: filepath.Join(s.dir, strings.ReplaceAll(pkg, "/", "_")+".test")}
		if slices.Contains(p.Deps, "pgregory.net/rapid") {
			b.flags = []string{"-rapid.seed=1", "-rapid.checks=" + strconv.Itoa(s.checks), "-rapid.nofailfile",
				"-rapid.shrinktime=0s"}
		}
		if err := s.compile(ctx, b.path, "test", "-c", "-vet=off", "-overlay="+s.overlay, "-o", b.path, path); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// compile has go write a file, unless it is there.
func (s *state) compile(ctx context.Context, path string, args ...string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	fmt.Printf("%s  compiling %s\n", time.Now().Format(time.TimeOnly), filepath.Base(path))
	command := exec.CommandContext(ctx, goCommand(), args...)
	command.Dir, command.Stdout, command.Stderr = s.root, os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// outcome is how a run of tests ended.
type outcome struct {
	failed bool
	// by is the test that failed first, and how says whether it failed, crashed, or took too long.
	by, how string
	seconds float64
	output  []byte
}

var (
	failing = regexp.MustCompile(`(?m)^\x16?--- FAIL: (\S+)`)
	crashed = regexp.MustCompile(`(?m)^(panic|fatal error|runtime): .*`)
)

// run runs tests of a binary until the first fails, for at most a limit; environment is what they have beside ours. It
// is an error if ctx ends before they do, or they cannot be run.
func (b *binary) run(ctx context.Context, tests []string, limit time.Duration, environment ...string) (
	*outcome, error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, memoryLimit), "bash", b.path, "-test.failfast",
		"-test.timeout=0", "-test.run=^(" + strings.Join(tests, "|") + ")$"}, b.flags...)
	command := exec.CommandContext(within, "bash", args...)
	var out bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = b.dir, &out, &out
	command.Env = append(os.Environ(), environment...)
	began := time.Now()
	err := runAlone(command)
	o := &outcome{failed: err != nil, output: out.Bytes(), seconds: time.Since(began).Seconds()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		o.failed, o.how = true, "time limit"
	case errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay):
		o.how = "fails"
		if found := crashed.Find(o.output); found != nil {
			o.how = string(found)
		}
	case err != nil:
		return nil, err
	}
	if found := failing.FindSubmatch(o.output); found != nil {
		o.by = string(found[1])
	}
	return o, nil
}

// runAlone runs a command in a group of processes that ends with it, and with this process. Its temporary files go too.
func runAlone(command *exec.Cmd) error {
	temporary, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	command.Env = append(command.Env, "TMPDIR="+temporary)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	return command.Run()
}

// tests are the names of a binary's tests, fuzz targets (their seeds are tests) and examples.
func (b *binary) tests(ctx context.Context) ([]string, error) {
	command := exec.CommandContext(ctx, b.path, "-test.list=.")
	command.Dir = b.dir
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s -test.list: %w", b.path, err)
	}
	return regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\S*`).FindAllString(string(out), -1), nil
}
