package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a process that runs a shell script.
func script(dir, name, text string) *Process {
	return &Process{
		Name:    name,
		LogFile: filepath.Join(dir, name+".log"),
		path:    "/bin/sh",
		args:    []string{"-c", text},
		pidfile: pidfile(filepath.Join(dir, name+".pid")),
	}
}

const sleeps = "exec sleep 600"

func TestProcessLives(t *testing.T) {
	p := script(t.TempDir(), "p", sleeps)
	if p.Running() {
		t.Error("runs before Start")
	}
	for _, end := range []func() error{p.Kill, p.Stop} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(string(p.pidfile))
		if err != nil || !p.Running() {
			t.Fatalf("after Start: running %v, pidfile %q, %v", p.Running(), first, err)
		}
		if err := p.Start(); err != nil {
			t.Error(err)
		}
		if again, _ := os.ReadFile(string(p.pidfile)); !cmp.Equal(first, again) {
			t.Errorf("Start of a running process: pid %s became %s", first, again)
		}
		if err := end(); err != nil || p.Running() {
			t.Errorf("after the end: running %v, %v", p.Running(), err)
		}
		if err := end(); err != nil {
			t.Errorf("ending twice: %v", err)
		}
	}
}

func TestStaleProcessIDIsNotSignalled(t *testing.T) {
	dir := t.TempDir()
	stranger := exec.Command("sleep", "600")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = stranger.Wait(); close(ended) }()
	t.Cleanup(func() { _ = stranger.Process.Kill(); <-ended })
	pid := strconv.Itoa(stranger.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, "etcd.pid"), []byte(pid), 0o644); err != nil {
		t.Fatal(err)
	}
	killed, err := Down(dir)
	if err != nil || len(killed) > 0 {
		t.Errorf("Down killed %v, %v", killed, err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process that has the id now: %v", err)
	}
}

func TestWaitUntilShowsWhyAProcessDied(t *testing.T) {
	p := script(t.TempDir(), "p", "echo the disk is full; exit 3")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	err := p.WaitUntil(t.Context(), func(context.Context) error { return errors.New("no answer") })
	for _, want := range []string{"p has died", "no answer", "the disk is full"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
}

func TestWaitUntilEndsWithItsContext(t *testing.T) {
	p := script(t.TempDir(), "p", "echo still loading; "+sleeps)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := p.WaitUntil(ctx, func(context.Context) error { return errors.New("no answer") })
	for _, want := range []string{"p is not ready", "deadline exceeded", "no answer", "still loading"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
}

// parentOf names the state directory when the test binary runs as the parent of TestChildDiesWithParent.
const parentOf = "CONTROLPLANE_TEST_PARENT_OF"

func playParent(dir string) {
	if err := script(dir, "child", sleeps).Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

func TestChildDiesWithParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOf+"="+dir)
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscan(stdout, &word); err != nil || word != "started" {
		t.Fatalf("parent says %q, %v", word, err)
	}
	child := pidfile(filepath.Join(dir, "child.pid"))
	if !child.held() {
		t.Fatal("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !child.gone(10 * time.Second) {
		_, _ = killAll(dir)
		t.Error("the child outlives its parent")
	}
}
