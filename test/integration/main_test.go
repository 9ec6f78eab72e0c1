// Package integration tests jobtree against a real API server.
package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// shared is the control plane of the tests that need no scheduler and no nodes; the first of them starts it.
var shared struct {
	sync.Once
	dir          string
	controlPlane *controlplane.ControlPlane
	err          error
}

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background()) // controller-runtime complains without one
	if isSoak() {
		patience *= 4
	}
	code := m.Run()
	if shared.controlPlane != nil {
		shared.controlPlane.Stop()
	}
	if live.cluster != nil {
		// GPU-hours of a status may be a minute older than the record of Leases that went with their namespace.
		if code == 0 {
			if err := within(patience, lastAudit); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		live.Stop()
		os.RemoveAll(live.dir)
	}
	pool.Stop(func(c *cluster) { _ = os.RemoveAll(c.dir) })
	tellStretched()
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

// lastAudit has what all tests have left in the shared cluster audited, GPU-hours and records included, and sees
// whether the scheduler's own audit has found anything meanwhile, about whatever.
func lastAudit() error {
	found, err := live.audits(context.Background())
	if err := errors.Join(err, violated(found)); err != nil {
		return err
	}
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(controlplane.BinDir(root), "kubectl-runs"), "audit", "--kubeconfig",
		live.Kubeconfig).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl runs audit, after all tests: %w:\n%s", err, out)
	}
	return nil
}

// apiServer returns a control plane without scheduler and nodes, with the manifests applied.
func apiServer(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	shared.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "jobtree-integration-"); shared.err == nil {
			shared.controlPlane, shared.err = controlplane.Start(context.Background(), controlplane.Options{Dir: shared.dir})
		}
	})
	if shared.err != nil {
		t.Fatalf("starting the control plane: %v", shared.err)
	}
	return shared.controlPlane
}
