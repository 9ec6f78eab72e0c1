package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// selection is which tests run, and how: only runs of the same selection add up.
type selection struct {
	// Packages are import paths.
	Packages []string `json:"packages"`
	// Match is a regular expression of names of tests; empty for all.
	Match string `json:"match,omitempty"`
	// Parallel is how many tests of a package run at once.
	Parallel int `json:"parallel"`
}

func (s selection) String() string {
	text := strings.Join(s.Packages, " ")
	if s.Match != "" {
		text += " -run " + s.Match
	}
	return text
}

// play runs the tests of a selection.
type play struct {
	tests selection
	// dir is where binaries and results are.
	dir string
	// limit is the longest that the tests of one package may take.
	limit    time.Duration
	binaries []binary
}

// binary has the tests of a package, and runs in the package's directory.
type binary struct{ pkg, dir, path string }

// goCommand is the go that is used.
func goCommand() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// build compiles the tests of the packages that match patterns, unless that was done for this state of the code.
func (p *play) build(ctx context.Context, patterns []string) (err error) {
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	list := exec.CommandContext(ctx, goCommand(), append([]string{"list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, patterns...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			continue
		}
		b := binary{pkg: pkg, dir: dir, path: filepath.Join(p.dir, strings.ReplaceAll(pkg, "/", "_")+".test")}
		if _, err := os.Stat(b.path); errors.Is(err, os.ErrNotExist) {
			compile := exec.CommandContext(ctx, goCommand(), "test", "-c", "-o", b.path, pkg)
			compile.Stdout, compile.Stderr = os.Stderr, os.Stderr
			if err := compile.Run(); err != nil {
				return errors.Join(fmt.Errorf("compiling the tests of %s: %w", pkg, err), os.RemoveAll(b.path))
			}
		}
		p.binaries, p.tests.Packages = append(p.binaries, b), append(p.tests.Packages, pkg)
	}
	if len(p.binaries) == 0 {
		return fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	return nil
}

// once runs all tests of the selection, keeps what they said, and returns what came of it. It is an error if the run
// was interrupted; then nothing is kept.
func (p *play) once(ctx context.Context, kind string, seed int64) (*run, error) {
	r := &run{Kind: kind, Seed: seed, Tests: p.tests, Load: loadAverage(), Started: time.Now().UTC()}
	if kind == busy {
		defer spin(loops)()
	}
	said, err := os.CreateTemp(p.dir, "now-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(said.Name()) }() // it has another name by then, unless the run is not to count
	defer func() { _ = said.Close() }()
	for _, b := range p.binaries {
		spent, err := p.one(ctx, b, seed, said)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted; the run that was going on does not count: %w", context.Cause(ctx))
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, err
		}
		r.Red = r.Red || err != nil
		r.CPUSeconds += spent.Seconds()
	}
	r.WallSeconds = time.Since(r.Started).Seconds()
	if err := r.keep(p.dir, said.Name()); err != nil {
		return nil, err
	}
	return r, r.judge()
}

// one runs the tests of a package, writes what they say as go test -json does, and returns the processor time that they
// and the processes that they awaited have used.
func (p *play) one(ctx context.Context, b binary, seed int64, said *os.File) (spent time.Duration, err error) {
	temporary, err := os.MkdirTemp("", "flakes-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	convert := exec.Command(goCommand(), "tool", "test2json", "-t", "-p", b.pkg)
	convert.Stdout, convert.Stderr = said, os.Stderr
	convert.SysProcAttr = apart()
	into, err := convert.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := convert.Start(); err != nil {
		return 0, err
	}
	args := []string{"-test.v=test2json", "-test.shuffle=" + strconv.FormatInt(seed, 10),
		"-test.parallel=" + strconv.Itoa(p.tests.Parallel), "-test.timeout=" + p.limit.String()}
	if p.tests.Match != "" {
		args = append(args, "-test.run="+p.tests.Match)
	}
	test := exec.CommandContext(ctx, b.path, args...)
	test.Dir, test.Stdout, test.Stderr = b.dir, into, into
	test.Env = append(os.Environ(), "TMPDIR="+temporary)
	test.SysProcAttr = apart()
	test.WaitDelay = 10 * time.Second // what a test has started and left running may hold the pipe
	err = test.Run()
	if state := test.ProcessState; state != nil {
		spent = state.UserTime() + state.SystemTime()
	}
	closing := into.Close()
	if converting := convert.Wait(); converting != nil {
		return spent, fmt.Errorf("go tool test2json: %w", converting)
	}
	if err != nil { // what fails after the last test has passed is told by the exit status alone
		err = errors.Join(err, event{Action: "output", Package: b.pkg, Output: err.Error() + "\n"}.write(said),
			event{Action: "fail", Package: b.pkg}.write(said))
	}
	return spent, errors.Join(err, closing)
}

// apart has a child end with this process, but not hear what is typed at its terminal: a test that is interrupted from
// there would look as if it had failed.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// spin keeps n processors busy until what it returns is called.
func spin(n int) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			for x := uint32(1); ; {
				for range 1 << 20 {
					x = x*1664525 + 1013904223
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	return func() { close(done); group.Wait() }
}

// loadAverage is how many processes were ready to run, on average over the last minute; -1 where the system does not
// say.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}
