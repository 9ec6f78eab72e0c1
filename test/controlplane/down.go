package controlplane

import (
	"errors"
	"os"
	"path/filepath"
)

// Running are the names of the processes of the control plane in a state directory that live, sorted.
func Running(dir string) (names []string) {
	for _, p := range pidfiles(dir) {
		if p.held() {
			names = append(names, p.name())
		}
	}
	return names
}

// Down ends every process of the control plane in a state directory, whoever started it, deletes the directory except
// for the logs, and returns the names of the processes that were running. Where nothing runs, or nothing is, it does
// nothing.
func Down(dir string) (killed []string, err error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if killed, err = killAll(dir); err != nil {
		return killed, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return killed, err
	}
	for _, entry := range entries {
		if entry.Name() != "logs" && entry.Name() != "lock" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return killed, err
}
