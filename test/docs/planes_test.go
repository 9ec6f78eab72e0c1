package docs

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// planes are the control planes on which pages are played, one after the other: to start one takes longer than many a
// page.
var planes struct {
	sync.Mutex
	// idle are those that no page uses, with the controller of JobSets and without.
	idle map[bool][]*plane
	// all are those that were ever started, to be stopped in the end.
	all []*plane
}

// plane is a control plane without nodes and scheduler, and what it held when it was new.
type plane struct {
	*controlplane.ControlPlane
	dir   string
	asNew *controlplane.Contents
}

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background()) // controller-runtime complains without one
	code := m.Run()
	for _, p := range planes.all {
		p.Stop()
		_ = os.RemoveAll(p.dir)
	}
	os.Exit(code)
}

// takePlane returns a control plane for a test, with the controller of JobSets or without, an idle one if there is one.
func takePlane(t *testing.T, jobSets bool) *controlplane.ControlPlane {
	t.Helper()
	planes.Lock()
	var p *plane
	if idle := planes.idle[jobSets]; len(idle) > 0 {
		p, planes.idle[jobSets] = idle[len(idle)-1], idle[:len(idle)-1]
	}
	planes.Unlock()
	if p == nil {
		p = startPlane(t, jobSets)
	}
	t.Cleanup(func() { p.release(t) })
	return p.ControlPlane
}

func startPlane(t *testing.T, jobSets bool) *plane {
	t.Helper()
	dir, err := os.MkdirTemp("", "jobtree-docs-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := controlplane.Start(t.Context(), controlplane.Options{Dir: dir, Kwok: true, PodGroups: true,
		JobSet: jobSets})
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{c, dir, nil}
	planes.Lock()
	planes.all = append(planes.all, p)
	planes.Unlock()
	if p.asNew, err = c.Contents(t.Context(), controlplane.Namespace, metav1.NamespaceDefault); err != nil {
		t.Fatal(err)
	}
	return p
}

// release gives a control plane back. One whose test has failed, or that does not become as it was, is stopped.
func (p *plane) release(t *testing.T) {
	if err := p.KillSchedulers(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		p.Stop()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := p.Restore(ctx, p.asNew, func(string) {})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Logf("no other page can use this one's control plane: %v", err)
			p.Stop()
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	planes.Lock()
	defer planes.Unlock()
	if planes.idle == nil {
		planes.idle = map[bool][]*plane{}
	}
	planes.idle[p.JobSet != nil] = append(planes.idle[p.JobSet != nil], p)
}
