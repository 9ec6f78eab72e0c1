package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scenarios is the package of the tests that start a control plane.
const scenarios = "test/integration"

// parallel is how many scenarios run at once.
const parallel = 4

// realTests are the scenarios on a real control plane. Its scheduler has the mutants inside, the tests have not.
type realTests struct {
	s      *state
	wanted bool
	// match is a regular expression of those that are used, limit the longest that those of a mutant may take.
	match, ldflags string
	limit          time.Duration
	binary         *binary
}

// build has the scheduler and the tests compiled, and puts the scheduler beside links to all else that is in bin.
func (r *realTests) build(ctx context.Context) error {
	bin := filepath.Join(r.s.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	others, err := filepath.Glob(filepath.Join(r.s.root, "bin", "*"))
	if err != nil {
		return err
	}
	const name = "jobtree-scheduler"
	for _, other := range others {
		link := filepath.Join(bin, filepath.Base(other))
		if _, err := os.Lstat(link); err == nil || filepath.Base(other) == name {
			continue
		}
		if err := os.Symlink(other, link); err != nil {
			return err
		}
	}
	if err := r.s.compile(ctx, filepath.Join(bin, name), "build", "-overlay="+r.s.overlay, "-ldflags="+r.ldflags,
		"-o", filepath.Join(bin, name), "./cmd/scheduler"); err != nil {
		return err
	}
	r.binary = &binary{pkg: scenarios, dir: filepath.Join(r.s.root, scenarios),
		path: filepath.Join(r.s.dir, "scenarios.test")}
	return r.s.compile(ctx, r.binary.path, "test", "-c", "-o", r.binary.path, "./"+scenarios)
}

// command runs scenarios.
func (r *realTests) command(ctx context.Context, match string, environment ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, r.binary.path, "-test.v", "-test.timeout=0", "-test.run="+match,
		"-test.parallel="+strconv.Itoa(parallel))
	command.Dir = r.binary.dir
	command.Env = append(append(os.Environ(), "JOBTREE_BIN="+filepath.Join(r.s.dir, "bin")), environment...)
	return command
}

// all tries mutants that no test beside the code has noticed, one after the other.
func (r *realTests) all(ctx context.Context, results []*result) error {
	if err := r.build(ctx); err != nil {
		return err
	}
	if err := r.reach(ctx); err != nil {
		return err
	}
	for _, found := range results {
		if found.State == killed || found.Real != "" {
			continue
		}
		now, err := r.try(ctx, found)
		if err != nil {
			return err
		}
		if err := r.s.keep(now); err != nil {
			return err
		}
	}
	return nil
}

// try has the scenarios that reach a mutant run, as many as the time suffices for, the shortest first.
func (r *realTests) try(ctx context.Context, found *result) (*result, error) {
	now, began := *found, time.Now()
	defer func() { now.Seconds += time.Since(began).Seconds() }()
	var reaching []*test
	for _, t := range r.s.tests {
		if t.Package == scenarios && !t.Broken && t.Reached.has(now.ID) {
			reaching = append(reaching, t)
		}
	}
	slices.SortStableFunc(reaching, func(a, b *test) int { return cmp.Compare(a.Seconds, b.Seconds) })
	var names []string
	seconds := 0.0
	for _, t := range reaching {
		seconds += t.Seconds / parallel
		if seconds > r.limit.Seconds()/2 && len(names) > 0 {
			break
		}
		names = append(names, t.Name)
	}
	now.Real = fmt.Sprintf("%d of %d scenarios", len(names), len(reaching))
	if len(names) == 0 {
		return &now, nil
	}
	now.State = survived
	by, err := r.failing(ctx, names, now.ID)
	if err != nil {
		return nil, err
	}
	if by != "" {
		now.State, now.By, now.How = killed, scenarios+" "+by, "fails"
	}
	return &now, nil
}

// failing runs scenarios with a mutant and returns the first that fails; none if none does within the limit.
func (r *realTests) failing(ctx context.Context, names []string, id int32) (string, error) {
	within, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	command := r.command(within, "^("+strings.Join(names, "|")+")$", fmt.Sprintf("JOBTREE_MUTANT=%d", id))
	command.Args = append(command.Args, "-test.failfast")
	first := ""
	err := r.follow(command, func(action, name string) {
		if action == "FAIL" && first == "" {
			first = name
			cancel() // the others need not end
		}
	})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if first == "" && err != nil && within.Err() == nil { // the audit at the end, or a crash
		first = names[0]
	}
	return first, nil
}

// said matches what a test binary says of a test that is no part of another.
var said = regexp.MustCompile(`^\x16?(?:=== (RUN|PAUSE|CONT)  +|--- (PASS|FAIL|SKIP): )([^\s/]+)(?: \([0-9.]+s\))?$`)

// follow runs a command and calls tell for all that it says of its tests.
func (r *realTests) follow(command *exec.Cmd, tell func(action, name string)) error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(r.s.dir, "scenarios.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = to, to
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(io.TeeReader(from, log))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if found := said.FindStringSubmatch(lines.Text()); found != nil {
				tell(found[1]+found[2], found[3])
			}
		}
		_, _ = io.Copy(io.Discard, from)
	})
	err = runAlone(command)
	_ = to.Close()
	reading.Wait()
	_ = from.Close()
	return err
}

// reach finds out what each scenario reaches, unless that is known: what schedulers have reached since it was last
// looked at is put down to all scenarios that run, so that one may be said to reach more than it does.
func (r *realTests) reach(ctx context.Context) error {
	if slices.ContainsFunc(r.s.tests, func(t *test) bool { return t.Package == scenarios }) {
		return nil
	}
	match := cmp.Or(r.match, ".")
	fmt.Printf("%s  what scenarios reach: all of them run once\n", time.Now().Format(time.TimeOnly))
	set, err := newMarks(filepath.Join(r.s.dir, "marks"), len(r.s.mutants))
	if err != nil {
		return err
	}
	defer func() { _ = set.close() }()
	running, known, since := map[string]*test{}, map[string]*test{}, map[string]time.Time{}
	var mutex sync.Mutex
	look := func() {
		now := set.take()
		for _, t := range running {
			t.Reached.add(now)
		}
	}
	stop := often(func() {
		mutex.Lock()
		defer mutex.Unlock()
		look()
	})
	_ = r.follow(r.command(ctx, match, set.environment()), func(action, name string) {
		mutex.Lock()
		defer mutex.Unlock()
		look()
		t := known[name]
		if t == nil {
			t = &test{Package: scenarios, Name: name, Reached: make(bits, len(r.s.mutants)/8+1), Broken: true}
			known[name] = t
		}
		switch action {
		case "RUN", "CONT":
			running[name], since[name] = t, time.Now()
		default: // what go test says of its time is without that of its parts that run at once
			delete(running, name)
			t.Seconds += time.Since(since[name]).Seconds()
			t.Broken = action != "PASS"
		}
	})
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, t := range known {
		r.s.tests = append(r.s.tests, t)
	}
	slices.SortStableFunc(r.s.tests, func(a, b *test) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
	})
	return r.s.keepReach()
}

// often calls a function ten times a second until what it returns is called.
func often(call func()) (stop func()) {
	done := make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-tick.C:
				call()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); calling.Wait() }
}
