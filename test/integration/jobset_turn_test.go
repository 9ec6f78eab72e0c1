package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// partOfJobSet is a Job of a JobSet: so many pods of so many GPUs, which last for a time, once others have come so far.
type partOfJobSet struct {
	name       string
	pods, gpus int
	lasts      string
	on, status string
	// slow says that its pods do not become ready by themselves.
	slow bool
}

// jobSetInTurn is a JobSet of some Jobs.
func (s *site) jobSetInTurn(name string, parts ...partOfJobSet) *unstructured.Unstructured {
	s.t.Helper()
	js := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}}
	js.SetNamespace(s.namespace)
	js.SetName(name)
	js.SetAnnotations(map[string]string{rqv1.AnnotationOwner: string(s.owner)})
	js.Object["spec"] = map[string]any{"failurePolicy": map[string]any{"maxRestarts": int64(100)}}
	var jobs []any
	for _, p := range parts {
		template := s.template(p.gpus)
		template.Annotations[stays] = p.lasts
		if p.slow {
			template.Annotations["pod-unready.stage.kwok.x-k8s.io/name"] = name + "-" + p.name
		}
		text, err := yaml.Marshal(map[string]any{"name": p.name, "template": map[string]any{"spec": map[string]any{
			"parallelism": p.pods, "completions": p.pods, "template": template}}})
		job := map[string]any{}
		if err == nil {
			err = yaml.Unmarshal(text, &job)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if p.on != "" {
			job["dependsOn"] = []any{map[string]any{"name": p.on, "status": p.status}}
		}
		jobs = append(jobs, job)
	}
	if err := unstructured.SetNestedSlice(js.Object, jobs, "spec", "replicatedJobs"); err != nil {
		s.t.Fatal(err)
	}
	s.create(js)
	s.restarting = append(s.restarting, js)
	return js
}

// TestJobsOfAJobSetInTurn: Jobs of which one is made once another is complete are gangs one after the other, and the
// second, which is the wider one, waits as a gang. Those that are made once others are ready are one gang with them,
// also where a Job without GPUs is between them.
func TestJobsOfAJobSetInTurn(t *testing.T) {
	t.Parallel()
	s := jobSetSite(t, 1, 3)
	s.submit("other", 8)
	s.await("other", rqv1.RunRunning, "bound 8 GPUs")
	js := s.jobSetInTurn("steps",
		partOfJobSet{name: "prepare", pods: 1, gpus: 8, lasts: "1s"},
		partOfJobSet{name: "check", pods: 1, lasts: "1s", on: "prepare", status: "Complete"},
		partOfJobSet{name: "train", pods: 2, gpus: 8, lasts: "1h", on: "check", status: "Complete"},
		partOfJobSet{name: "driver", pods: 1, lasts: "1s", on: "train", status: "Ready"},
		partOfJobSet{name: "serve", pods: 1, gpus: 8, lasts: "1h", on: "driver", status: "Ready"})
	run := s.jobSetRun("steps")
	s.await(run, rqv1.RunPending, "short by 8")
	if got := s.closures(run); got[rqv1.ClosedCompleted] != 1 || len(got) != 1 {
		t.Errorf("Leases closed as %v, want the one of the first Job as Completed", got)
	}
	s.removeRun("other")
	s.await(run, rqv1.RunRunning, "bound 24 GPUs")
	s.paidBy(run, map[string]int32{string(s.owner) + "/all own Active": 24})
	eventually(t, "the driver", func() error {
		pods := &corev1.PodList{}
		if err := s.api.List(t.Context(), pods, client.InNamespace(s.namespace),
			client.MatchingLabels{"jobset.sigs.k8s.io/replicatedjob-name": "driver"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Spec.NodeName == "" {
			return errors.New("it has no node")
		}
		return nil
	})
	if got := s.closures(run); fmt.Sprint(got) != fmt.Sprint(map[rqv1.ClosureReason]int{rqv1.ClosedCompleted: 1, "": 3}) {
		t.Errorf("Leases closed as %v, want that of the first Job, and three that are open", got)
	}
	s.settled()
	s.succeed(run)
	s.await(run, rqv1.RunCompleted, "")
	s.remove(js)
}

// TestAJobThatOthersWaitForIsSlow: the places of a Job that is made once another is ready are kept for as long as that
// takes, though it takes longer than a gang's deadline.
func TestAJobThatOthersWaitForIsSlow(t *testing.T) {
	t.Parallel()
	s := jobSetSite(t, 1, 2)
	js := s.jobSetInTurn("steps",
		partOfJobSet{name: "load", pods: 1, gpus: 8, lasts: "1h", slow: true},
		partOfJobSet{name: "train", pods: 1, gpus: 8, lasts: "1h", on: "load", status: "Ready"})
	run := s.jobSetRun("steps")
	s.await(run, rqv1.RunPending, "not all of the group's 2 pods have been created: their controller creates some once "+
		"others are bound, or ready")
	var first corev1.Pod
	for _, first = range s.podsOf(run) {
		if first.Spec.NodeName == "" {
			t.Errorf("pod %s, for which others wait, has no node", first.Name)
		}
	}
	deadline := first.CreationTimestamp.Add(35 * time.Second)
	eventually(t, "a gang's deadline passes", func() error {
		if left := time.Until(deadline); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	s.submit("other", 8)
	s.await("other", rqv1.RunPending, "short by 8") // the place is kept
	s.becomesReadyOf(run, first.Name)
	s.await(run, rqv1.RunRunning, "bound 16 GPUs")
	if is := s.podsOf(run)[first.Name]; is.UID != first.UID {
		t.Errorf("pod %s has been started again", first.Name)
	}
	if got := s.closures(run); got[""] != 2 || len(got) != 1 {
		t.Errorf("Leases closed as %v, want two that are open", got)
	}
	s.settled()
	s.removeRun("other")
	s.remove(js)
}
