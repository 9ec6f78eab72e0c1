package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// outage is how long the API server is away.
const outage = 30 * time.Second

// TestRestart restarts the scheduler, and takes the API server away while gangs start: usage is what it was, nothing
// that runs is touched, what was being started starts, and nobody holds more than is paid for.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "40s"}), 4, 4, 64)
	s.startScheduler()
	s.submit("first", 32, inPods(4), inGroups(16))
	s.await("first", rqv1.RunRunning, "bound 32 GPUs")
	s.settled()
	usage, pods := s.usage(), s.uids("first")

	if err := s.cluster.Scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	s.submit("over", 40, inPods(2))
	s.submit("second", 24, inPods(1))
	s.startScheduler()
	s.await("over", rqv1.RunPending, "budget of")
	s.await("second", rqv1.RunRunning, "bound 24 GPUs")
	s.settled()
	s.removeRun("second")
	s.awaitGone("second")
	s.settled()
	if diff := cmp.Diff(usage, s.usage()); diff != "" {
		t.Error(diff)
	}

	for i := range 4 {
		s.submit(fmt.Sprintf("gang-%d", i), 8, inPods(1))
	}
	if err := s.APIServer.Kill(); err != nil {
		t.Fatal(err)
	}
	<-time.After(outage)
	if err := s.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		s.awaitAfterOutage(fmt.Sprintf("gang-%d", i), "bound 8 GPUs")
	}
	s.settled()
	if diff := cmp.Diff(pods, s.uids("first")); diff != "" {
		t.Error(diff)
	}
}

// cachesReturn is how long a cache may rest before it asks an API server again that was away: client-go's reflectors
// double their rest up to 30 s, and add as much again at random.
const cachesReturn = time.Minute

// awaitAfterOutage waits for a Run to run, and first for the caches by which the scheduler knows of it.
func (s *site) awaitAfterOutage(run, message string) {
	s.t.Helper()
	err := within(cachesReturn+patience, func() error {
		got, err := s.get(run)
		if err == nil {
			err = is(got, rqv1.RunRunning, message)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// usage is what the site's Budget says that its envelopes hold.
func (s *site) usage() []rqv1.EnvelopeStatus {
	s.t.Helper()
	budget := &rqv1.Budget{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: s.namespace}, budget); err != nil {
		s.t.Fatal(err)
	}
	for i := range budget.Status.Envelopes {
		budget.Status.Envelopes[i].GPUHours = nil // they grow
	}
	return budget.Status.Envelopes
}

// uids are the UIDs of a Run's pods, by name.
func (s *site) uids(run string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for name, pod := range s.podsOf(run) {
		out[name] = string(pod.UID)
	}
	return out
}
