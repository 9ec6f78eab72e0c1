package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A pidfile holds the id of a process and is locked by that very process for as long as it lives: the process inherits
// the locked descriptor, and the kernel drops the lock with it, however it dies. An unlocked pidfile is therefore stale
// whatever number it holds, and an id that the system has given to somebody else is never signalled.
type pidfile string

// name is that of the process.
func (p pidfile) name() string { return strings.TrimSuffix(filepath.Base(string(p)), ".pid") }

// take opens and locks the pidfile for a process about to start, to which the open file must be handed down.
func (p pidfile) take() (*os.File, error) {
	f, err := os.OpenFile(string(p), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, f.Truncate(0)
}

// held tells whether the process that the pidfile belongs to lives.
func (p pidfile) held() bool {
	f, err := os.Open(string(p))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	// Shared, so that two who look at the same time do not take each other for the process.
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// signal sends a signal to the process, and tells whether there was one.
func (p pidfile) signal(s os.Signal) (bool, error) {
	pid, running, err := p.id()
	if err != nil || !running {
		return running, err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return true, err
	}
	defer func() { _ = process.Release() }()
	// Asked after the process was looked up: the handle is then that of the process which holds the lock.
	if !p.held() {
		return false, nil
	}
	if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return true, err
	}
	return true, nil
}

// id returns the process's id, and whether it lives.
func (p pidfile) id() (pid int, running bool, err error) {
	data, err := os.ReadFile(string(p))
	if err != nil || !p.held() {
		return 0, false, nil
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
		return 0, true, fmt.Errorf("%s is locked by a running process but does not hold its id", p)
	}
	return pid, true, nil
}

// gone waits until the process is dead, at most for the given time, and tells whether it is.
func (p pidfile) gone(within time.Duration) bool {
	for deadline := time.Now().Add(within); p.held(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// pidfiles are all pidfiles in a state directory, by name.
func pidfiles(dir string) []pidfile {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.pid")) // sorted; fails for a bad pattern only
	found := make([]pidfile, len(paths))
	for i, path := range paths {
		found[i] = pidfile(path)
	}
	return found
}

// killTimeout is how long it takes at most until a process that was killed is gone: on a busy machine it waits for its
// turn to end.
const killTimeout = 2 * time.Minute

// killAll kills every process of a state directory but those of the given names, and returns the names of those that
// were running.
func killAll(dir string, but ...string) (killed []string, err error) {
	all := slices.DeleteFunc(pidfiles(dir), func(p pidfile) bool { return slices.Contains(but, p.name()) })
	for _, p := range all {
		running, e := p.signal(syscall.SIGKILL)
		if running {
			killed = append(killed, p.name())
		}
		err = errors.Join(err, e)
	}
	for _, p := range all {
		if !p.gone(killTimeout) {
			err = errors.Join(err, fmt.Errorf("%s: still running %v after SIGKILL", p, killTimeout))
		}
	}
	return killed, err
}

// terminate has every process of a state directory but those of the given names end by itself, and waits at most for
// the given time until all have.
func terminate(dir string, within time.Duration, but ...string) {
	deadline := time.Now().Add(within)
	var asked []pidfile
	for _, p := range pidfiles(dir) {
		if slices.Contains(but, p.name()) {
			continue
		}
		if running, err := p.signal(syscall.SIGTERM); running && err == nil {
			asked = append(asked, p)
		}
	}
	for _, p := range asked {
		p.gone(time.Until(deadline))
	}
}

// lock keeps a second Start or Down out of a state directory until the returned function is called.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
