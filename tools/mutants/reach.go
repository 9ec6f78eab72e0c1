package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// test is a test, with what of the changed code it reaches.
type test struct {
	Package string  `json:"package"`
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// Broken is true if it fails without a mutant: it can show nothing.
	Broken bool `json:"broken,omitempty"`
	// Reached has a bit for each mutant.
	Reached bits `json:"reached"`
}

// bits is a set of mutants.
type bits []byte

func (b bits) has(id int32) bool { return int(id/8) < len(b) && b[id/8]&(1<<(id%8)) != 0 }

// add adds those whose byte is not 0.
func (b bits) add(marks []byte) {
	for id, mark := range marks {
		if mark != 0 {
			b[id/8] |= 1 << (id % 8)
		}
	}
}

// marks is a file with a byte for each mutant, that processes set when they reach it.
type marks struct {
	path string
	data []byte
}

func newMarks(path string, mutants int) (*marks, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(int64(mutants)); err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, mutants, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return &marks{path: path, data: data}, err
}

func (m *marks) environment() string { return "JOBTREE_REACHED=" + m.path }

// take returns what is set, and clears it.
func (m *marks) take() []byte {
	out := slices.Clone(m.data)
	for i := range m.data { // what is set just now is kept: a test that reaches something does so more than once
		if out[i] != 0 {
			m.data[i] = 0
		}
	}
	return out
}

func (m *marks) close() error { return syscall.Munmap(m.data) }

// reach has what each test of a binary reaches found out, one test after the other, unless that is known.
func (s *state) reach(ctx context.Context, b *binary) error {
	if slices.ContainsFunc(s.tests, func(t *test) bool { return t.Package == b.pkg }) {
		return nil
	}
	names, err := b.tests(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s  what %d tests of %s reach\n", time.Now().Format(time.TimeOnly), len(names), b.pkg)
	set, err := newMarks(filepath.Join(s.dir, "marks"), len(s.mutants))
	if err != nil {
		return err
	}
	defer func() { _ = set.close() }()
	for _, name := range names {
		o, err := b.run(ctx, []string{name}, 10*time.Minute, set.environment())
		if err != nil {
			return err
		}
		t := &test{Package: b.pkg, Name: name, Seconds: o.seconds, Broken: o.failed, Reached: make(bits, len(s.mutants)/8+1)}
		t.Reached.add(set.take())
		s.tests = append(s.tests, t)
	}
	return s.keepReach()
}

func (s *state) reachPath() string { return filepath.Join(s.dir, "reach.json") }

func (s *state) keepReach() error { return writeJSON(s.reachPath(), s.tests) }

// writeJSON writes a file whole or not at all.
func writeJSON(path string, what any) error {
	data, err := json.MarshalIndent(what, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".now", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".now", path)
}

// readJSON reads one, and leaves what as it is if there is none.
func readJSON(path string, what any) error {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, what)
	}
	return err
}

// chunk is tests of one binary that run together.
type chunk struct {
	binary  *binary
	tests   []string
	seconds float64
	// slow are those that take long, other those of other packages than the mutant's.
	slow, other bool
}

// slowSeconds is what a test that is left for later takes at least.
const slowSeconds = 0.5

// plan is what is to run for a mutant: the tests that reach it, those of its package and those that are quick first.
func plan(m *mutant, all []*test, binaries []*binary) []*chunk {
	var chunks []*chunk
	for _, b := range binaries {
		quick := &chunk{binary: b, other: b.pkg != m.Package}
		slow := &chunk{binary: b, other: quick.other, slow: true}
		for _, t := range all {
			if t.Package != b.pkg || t.Broken || !t.Reached.has(m.ID) {
				continue
			}
			c := quick
			if t.Seconds >= slowSeconds {
				c = slow
			}
			c.tests = append(c.tests, t.Name)
			c.seconds += t.Seconds
		}
		for _, c := range []*chunk{quick, slow} {
			if len(c.tests) > 0 {
				chunks = append(chunks, c)
			}
		}
	}
	rank := func(c *chunk) int {
		rank := 0
		if c.slow {
			rank += 2
		}
		if c.other {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(chunks, func(a, b *chunk) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.seconds, b.seconds))
	})
	return chunks
}
