package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// show serves the page of the dashboard on the fleet until the context ends.
func (s *stage) show(ctx context.Context) error {
	fmt.Println("This page shows the fleet. Press Ctrl-C to end all of it.")
	page := exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl-runs"), "dashboard")
	page.Env = append(os.Environ(), "KUBECONFIG="+s.c.Kubeconfig)
	page.Stdout, page.Stderr = os.Stdout, os.Stderr
	page.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // main stays on the thread that is meant
	err := page.Run()
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the page has ended: %w", err)
}
