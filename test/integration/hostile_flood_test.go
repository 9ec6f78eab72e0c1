package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// floodRuns of floodPods pods each are what a tenant submits that has a Budget of floodBudget GPUs.
	floodRuns, floodPods, floodBudget = 200, 128, 16
	// atOnce is how long a neighbour's Run takes to start at most, from its submission until it runs.
	atOnce = time.Second
)

// TestFlood has a tenant submit far more than it can pay for, and a neighbour submit a Run meanwhile and afterwards.
func TestFlood(t *testing.T) {
	s := newSite(t, liveCluster(t), 2, 10, 0)
	private := func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }
	s.fund("tenant", s.envelope("all", floodBudget, private))
	s.fund("next", s.envelope("all", 64, private))
	first := s.startsIn("before", 8, s.by("next"))
	t.Logf("before the flood: %s", first)

	var tenant sync.WaitGroup
	tenant.Go(func() {
		for i := range floodRuns {
			if err := s.api.Create(t.Context(), s.run(fmt.Sprintf("flood-%d", i), floodPods, s.by("tenant"),
				inPods(1))); err != nil {
				t.Errorf("Run %d of the flood: %v", i, err)
				return
			}
		}
	})
	during := s.startsIn("during", 8, s.by("next"))
	tenant.Wait()
	after := s.startsIn("after", 8, s.by("next"))
	t.Logf("during the flood: %s, after it: %s", during, after)
	for when, took := range map[string]time.Duration{"during": during, "after": after} {
		if took > atOnce {
			t.Errorf("%s the flood of %d Runs of %d pods a neighbour's Run starts in %s", when, floodRuns, floodPods, took)
		}
	}
	s.awaitRefusal(fmt.Sprintf("flood-%d", floodRuns-1), "InsufficientBudget")
	var pods corev1.PodList
	if err := s.api.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if flood := len(pods.Items) - 3; flood > 0 {
		t.Errorf("the flood has made %d pods", flood)
	}
}

// startsIn submits a Run and returns how long it takes until a watch tells that it runs.
func (s *site) startsIn(name string, gpus int32, changes ...func(*rqv1.Run)) time.Duration {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	watch, err := s.api.Watch(ctx, &rqv1.RunList{}, client.InNamespace(s.namespace),
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		s.t.Fatal(err)
	}
	defer watch.Stop()
	start := time.Now()
	s.submit(name, gpus, changes...)
	for event := range watch.ResultChan() {
		if run, ok := event.Object.(*rqv1.Run); ok && run.Status.Phase == rqv1.RunRunning {
			return time.Since(start)
		}
	}
	s.t.Fatalf("Run %s does not start within %s", name, patience)
	return 0
}
