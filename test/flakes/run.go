package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"
)

// run is one run of all tests of a selection. What its tests said lies beside it, under its name with .jsonl.
type run struct {
	// Kind is alone or busy.
	Kind    string    `json:"kind"`
	Seed    int64     `json:"seed"`
	Tests   selection `json:"tests"`
	Started time.Time `json:"started"`
	// Load is the load average of the machine when it began; -1 if that is not known.
	Load float64 `json:"load"`
	// WallSeconds is how long it took; CPUSeconds what the tests and the processes that they awaited used meanwhile.
	WallSeconds float64 `json:"wallSeconds"`
	CPUSeconds  float64 `json:"cpuSeconds"`
	// Red is true if any package's tests failed.
	Red bool `json:"red"`

	path string // of the description
	said *told
}

// What comes of a run.
type verdict string

const (
	isGreen verdict = "green"
	isRed   verdict = "red"
	// isSlow is a run that failed nothing on a machine that was too slow to show anything.
	isSlow verdict = "slow machine"
)

func (r *run) verdict() verdict {
	switch {
	case r.Red:
		return isRed
	case r.said.stretched:
		return isSlow
	}
	return isGreen
}

func (r *run) wall() time.Duration { return time.Duration(r.WallSeconds * float64(time.Second)) }

// keep gives what the tests said its lasting name, and then writes the description: a run is there when that is.
func (r *run) keep(dir, said string) error {
	r.path = filepath.Join(dir, fmt.Sprintf("%s-%s-%d.json", r.Started.Format("20060102T150405.000"), r.Kind, r.Seed))
	if err := os.Rename(said, r.path+"l"); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	written := filepath.Join(dir, "now-description")
	if err := os.WriteFile(written, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(written, r.path)
}

// judge reads what the tests said.
func (r *run) judge() error {
	file, err := os.Open(r.path + "l")
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if r.said, err = listen(file); err != nil {
		return fmt.Errorf("%s: %w", file.Name(), err)
	}
	return nil
}

// load returns the runs of a selection that are kept in a directory, the oldest first.
func load(dir string, tests selection) ([]*run, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var runs []*run
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r := &run{path: path}
		if err := json.Unmarshal(data, r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !reflect.DeepEqual(r.Tests, tests) {
			continue
		}
		if err := r.judge(); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
