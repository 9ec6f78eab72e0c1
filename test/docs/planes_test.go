package docs

import (
	"context"
	"os"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// planes are the control planes on which pages are played.
var planes controlplane.Pool[*plane]

// plane is a control plane without nodes and scheduler, and what it held when it was new.
type plane struct {
	*controlplane.ControlPlane
	dir   string
	asNew *controlplane.Contents
}

// Restore implements controlplane.Lent.
func (p *plane) Restore(ctx context.Context) error { return p.RestoreTo(ctx, p.asNew, func(string) {}) }

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background()) // controller-runtime complains without one
	code := m.Run()
	planes.Stop(func(p *plane) { _ = os.RemoveAll(p.dir) })
	os.Exit(code)
}

// takePlane returns a control plane for a test, with the controller of JobSets or without.
func takePlane(t *testing.T, jobSets bool) *controlplane.ControlPlane {
	t.Helper()
	p, err := planes.Take(jobSets, func() (*plane, error) { return startPlane(t.Context(), jobSets) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.KillSchedulers(); err != nil {
			t.Error(err)
		}
		if err := planes.Give(p, jobSets, t.Failed()); err != nil {
			t.Log(err)
		}
	})
	return p.ControlPlane
}

func startPlane(ctx context.Context, jobSets bool) (*plane, error) {
	dir, err := os.MkdirTemp("", "jobtree-docs-")
	if err != nil {
		return nil, err
	}
	c, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, Kwok: true, PodGroups: true, JobSet: jobSets})
	if err != nil {
		return nil, err
	}
	p := &plane{c, dir, nil}
	p.asNew, err = c.Contents(ctx)
	return p, err
}
