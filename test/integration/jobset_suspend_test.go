package integration

import (
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// suspend sets whether a JobSet is suspended.
func suspend(t *testing.T, js *unstructured.Unstructured, is bool) {
	t.Helper()
	if err := unstructured.SetNestedField(js.Object, is, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
}

// TestAJobSetIsSuspended: a JobSet that is suspended has no pods, and so no Run, and keeps no room from others; each
// time that it is resumed it waits, and starts, as a gang.
func TestAJobSetIsSuspended(t *testing.T) {
	t.Parallel()
	s := jobSetSite(t, 1, 4)
	js := s.jobSetOf("train", 2)
	suspend(t, js, true)
	s.create(js)
	run := s.jobSetRun("train")
	eventually(t, "its Jobs are suspended", func() error {
		jobs := &batchv1.JobList{}
		if err := s.api.List(t.Context(), jobs, client.InNamespace(s.namespace)); err != nil || len(jobs.Items) != 2 {
			return errors.Join(err, fmt.Errorf("there are %d", len(jobs.Items)))
		}
		return nil
	})
	s.submit("first", 8)
	s.await("first", rqv1.RunRunning, "bound 8 GPUs")
	if _, err := s.get(run); err == nil {
		t.Errorf("Run %s stands for a JobSet that is suspended", run)
	}

	resume := func(is bool) {
		edit(s, js, func(o *unstructured.Unstructured) { suspend(t, o, !is) })
	}
	resume(true)
	s.await(run, rqv1.RunPending, "short by 8")
	if err := s.holdsNothing(run); err != nil {
		t.Error(err)
	}
	s.removeRun("first")
	s.await(run, rqv1.RunRunning, "bound 32 GPUs")
	before := s.byJob(run, 4)

	resume(false)
	s.awaitGone(run)
	s.submit("other", 32)
	s.await("other", rqv1.RunRunning, "bound 32 GPUs")
	resume(true)
	s.await(run, rqv1.RunPending, "short by 32")
	s.removeRun("other")
	s.await(run, rqv1.RunRunning, "bound 32 GPUs")
	if err := s.anew(run, before); err != nil {
		t.Error(err)
	}
	s.settled()
	s.remove(js)
}
