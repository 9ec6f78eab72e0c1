// Package counters has a process that was built with -cover -covermode=atomic write each second what it has covered so
// far, below GOCOVERDIR: a process that is killed writes nothing at its end. Only programs that are built with the tag
// counters import it.
package counters

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"time"
)

func init() {
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		go func() { fmt.Fprintln(os.Stderr, "what is covered is not counted:", count(dir)) }()
	}
}

// count writes each second, until that fails. The runtime is ready for it only after all packages are initialized.
func count(dir string) error {
	name := ""
	for range time.Tick(time.Second) {
		if name == "" {
			var err error
			if name, err = fileName(); err != nil {
				return err
			}
		}
		if err := write(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// fileName is the name that go tool covdata looks for: it has the hash of what can be covered, which the runtime tells
// only in the name of another file.
func fileName() (string, error) {
	dir, err := os.MkdirTemp("", "counters-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := coverage.WriteMetaDir(dir); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, "covmeta.*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d descriptions of what can be covered: %w", len(found), err)
	}
	hash := filepath.Ext(found[0])
	return fmt.Sprintf("covcounters%s.%d.%d", hash, os.Getpid(), time.Now().UnixNano()), nil
}

// write writes the file in place of the last one. It is there whole at each moment.
func write(dir, name string) error {
	var data bytes.Buffer
	if err := coverage.WriteCounters(&data); err != nil {
		return err
	}
	now := filepath.Join(dir, fmt.Sprintf("now.%d", os.Getpid()))
	if err := os.WriteFile(now, data.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(now, filepath.Join(dir, name))
}
