package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestMain ends the shared control plane after the last test, and plays the parent of TestChildDiesWithParent.
func TestMain(m *testing.M) {
	if dir := os.Getenv(parentOf); dir != "" {
		playParent(dir)
	}
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

// shared is the control plane of the tests that leave one as they found it.
var shared plane

type plane struct {
	once sync.Once
	dir  string
	c    *ControlPlane
	err  error
}

func (p *plane) start() {
	if p.dir, p.err = os.MkdirTemp("", "controlplane"); p.err != nil {
		return
	}
	fleet := filepath.Join(p.dir, "fleet.yaml")
	if p.err = os.WriteFile(fleet, []byte(testFleet), 0o644); p.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	p.c, p.err = Start(ctx, Options{Dir: p.dir, Fleet: fleet, Kwok: true})
}

func (p *plane) stop() {
	if p.c != nil {
		p.c.Stop()
	}
	if err := os.RemoveAll(p.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// testPlane is the shared control plane.
func testPlane(t *testing.T) *ControlPlane {
	t.Helper()
	shared.once.Do(shared.start)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.c
}

// eventually polls until done returns nil, and fails the test with its last error after a minute.
func eventually(t *testing.T, done func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

const testFleet = `# one node that kwok plays, one that nobody plays
apiVersion: v1
kind: Node
metadata:
  name: played
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {fabric.domain: A}
status:
  capacity: {cpu: "64", memory: 1Ti, pods: "200", nvidia.com/gpu: "8"}
  allocatable: {cpu: "60", memory: 1Ti, pods: "200", nvidia.com/gpu: "7"}
---
apiVersion: v1
kind: Node
metadata: {name: absent}
`
