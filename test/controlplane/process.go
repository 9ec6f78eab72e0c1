package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one process of a control plane. Its methods may be called from several goroutines.
type Process struct {
	// Name is unique in the state directory.
	Name string
	// LogFile holds standard output and standard error of all its lives.
	LogFile string
	// Address is host:port of its secure port; empty when it serves none.
	Address string

	path     string
	args     []string
	detached bool
	pidfile  pidfile
}

// process describes a process without starting it.
func (c *ControlPlane) process(name, binaryName string, args ...string) (*Process, error) {
	path, err := binary(c.options.BinDir, binaryName)
	if err != nil {
		return nil, err
	}
	return &Process{
		Name:     name,
		LogFile:  filepath.Join(c.options.Dir, "logs", name+".log"),
		path:     path,
		args:     args,
		detached: c.options.Detached,
		pidfile:  pidfile(filepath.Join(c.options.Dir, name+".pid")),
	}, nil
}

// Running tells whether the process lives.
func (p *Process) Running() bool { return p.pidfile.held() }

// PeakMemory returns the most bytes that the process has had resident since it started. It is an error if it does not
// run, or the system keeps no /proc.
func (p *Process) PeakMemory() (int64, error) { return p.memory("VmHWM") }

// Memory returns how many bytes the process has resident, likewise.
func (p *Process) Memory() (int64, error) { return p.memory("VmRSS") }

// memory returns a figure, in bytes, of the process's status.
func (p *Process) memory(figure string) (int64, error) {
	pid, running, err := p.pidfile.id()
	if err != nil {
		return 0, err
	}
	if !running {
		return 0, fmt.Errorf("%s is not running", p.Name)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), figure+":")
	var kibibytes int64
	if _, err := fmt.Sscanf(after, "%d kB", &kibibytes); err != nil {
		return 0, fmt.Errorf("%s: no %s in its status: %w", p.Name, figure, err)
	}
	return kibibytes << 10, nil
}

// Start starts the process with the arguments of its first life. A running one is left alone.
func (p *Process) Start() error {
	if p.Running() {
		return nil
	}
	held, err := p.pidfile.take()
	if err != nil {
		return err
	}
	// Ours must go, or the lock would outlive the process.
	defer func() { _ = held.Close() }()
	log, err := os.OpenFile(p.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{held}
	if p.detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = cmd.Start()
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		err = startOnLastingThread(cmd)
	}
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // reaps it; how it ended is in its log
	_, err = fmt.Fprintf(held, "%d\n", cmd.Process.Pid)
	return err
}

// starters are served by a thread that lives as long as this process.
var starters = sync.OnceValue(func() chan<- func() {
	queue := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range queue {
			start()
		}
	}()
	return queue
})

// startOnLastingThread starts a command whose life ends with its parent's. The kernel means the parent thread, and the
// Go runtime may end any thread but one that is locked to a goroutine.
func startOnLastingThread(cmd *exec.Cmd) error {
	result := make(chan error)
	starters() <- func() { result <- cmd.Start() }
	return <-result
}

// Signal sends a signal to the process; one that is not running is no error.
func (p *Process) Signal(s os.Signal) error {
	_, err := p.pidfile.signal(s)
	return err
}

// Kill ends the process with SIGKILL and returns when it is gone.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL, killTimeout) }

// Stop ends the process with SIGTERM, after 30 seconds with SIGKILL, and returns when it is gone.
func (p *Process) Stop() error {
	if p.end(syscall.SIGTERM, 30*time.Second) == nil {
		return nil
	}
	return p.Kill()
}

func (p *Process) end(s os.Signal, within time.Duration) error {
	if err := p.Signal(s); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if !p.pidfile.gone(within) {
		return fmt.Errorf("%s: still running %v after %v", p.Name, within, s)
	}
	return nil
}

// WaitUntil polls until ready returns nil. It ends early when ctx does or when the process has died; the error then
// holds the last reason why it was not ready and the end of the log.
func (p *Process) WaitUntil(ctx context.Context, ready func(context.Context) error) error {
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		problem := ""
		select {
		case <-ctx.Done():
			problem = "is not ready: " + context.Cause(ctx).Error()
		case <-time.After(50 * time.Millisecond):
			if p.Running() {
				continue
			}
			problem = "has died"
		}
		return fmt.Errorf("%s %s (%w); its log %s ends with:\n%s", p.Name, problem, last, p.LogFile, p.LogTail(20))
	}
}

// LogTail is the last lines of the log.
func (p *Process) LogTail(lines int) string {
	data, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
