package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// written writes documents for -f.
func written(t *testing.T, documents ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	podSpec = "{schedulerName: jobtree, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}"
	jobSet  = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llm, annotations: {rq.davidlangworthy.io/owner: "org:ai:rai"}}
spec:
  replicatedJobs:
  - {name: w, replicas: 2, template: {spec: {parallelism: 1, completions: 1, template: {spec: ` + podSpec + `}}}}`
	trainJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {schedulerName: jobtree, containers: [{name: node}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, annotations: {rq.davidlangworthy.io/owner: "org:ai:rai"}}
spec:
  runtimeRef: {name: torch}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}`
	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: train, annotations: {rq.davidlangworthy.io/owner: "org:ai:rai"}}
spec: {parallelism: 3, suspend: true, template: {spec: ` + podSpec + `}}`
	cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: evals, annotations: {rq.davidlangworthy.io/owner: "org:ai:rai"}}
spec: {jobTemplate: {spec: {template: {spec: ` + podSpec + `}}}}`
	farm = `
apiVersion: example.com/v1
kind: Farm
metadata: {name: farm, annotations: {rq.davidlangworthy.io/owner: "org:ai:rai"}}
spec: {template: {spec: ` + podSpec + `}}`
	unpaid = `
apiVersion: v1
kind: Pod
metadata: {name: lone}
spec: ` + podSpec
)

// TestPlanOfOthersWorkloads says what would happen to the pods that objects of other kinds would make.
func TestPlanOfOthersWorkloads(t *testing.T) {
	many := strings.Replace(jobSet, "replicas: 2", "replicas: 9", 1)
	for name, c := range map[string]struct {
		documents []string
		args      string
		spoil     func(*clitest.Server)
		code      int
		told      []string
	}{
		"a JobSet that fits": {documents: []string{jobSet}, told: []string{"RUN               rai/JobSet/llm",
			"now, with 16 GPUs on n0, n1", "paid by rai/west (16 GPUs)"}},
		"for a script": {documents: []string{jobSet}, args: "-o jsonpath={.run}/{.gpus}/{.startsNow.gpus}",
			told: []string{"jobset-llm-", "/16/16"}},
		"a JobSet that does not": {documents: []string{many}, told: []string{"rai/JobSet/llm", "NeverFits"}},
		"a TrainJob with its runtime": {documents: []string{trainJob}, told: []string{"rai/JobSet/tune",
			"now, with 16 GPUs on n0, n1"}},
		"a TrainJob without": {documents: []string{trainJob[strings.Index(trainJob, "---\n")+4:]}, code: session.ExitError,
			told: []string{"TrainJob/tune takes its pod template from ClusterTrainingRuntime/torch: it is not there: give it " +
				"with -f too"}},
		"a Job that may end while it waits": {documents: []string{strings.Replace(job, "suspend: true",
			"activeDeadlineSeconds: 600", 1)}, told: []string{"now, with 8 GPUs on n0", "spec.activeDeadlineSeconds: 600 of " +
			"Job/train counts while its pods wait, too", "annotation rq.davidlangworthy.io/max-duration"}},
		"Jobs of a CronJob that may": {documents: []string{strings.Replace(cronJob, "{template:",
			"{activeDeadlineSeconds: 600, template:", 1)}, told: []string{
			"spec.jobTemplate.spec.activeDeadlineSeconds: 600 of CronJob/evals"}},
		"pods that are alike, later": {documents: []string{job}, told: []string{"rai/Pod/train-0", "now, with 8 GPUs on n0",
			"there would be 2 more like it", "Job/train makes no pods while spec.suspend is true"}},
		"several": {documents: []string{jobSet, job}, told: []string{"rai/JobSet/llm", "\n\nRUN", "rai/Pod/train-0"}},
		"nobody pays": {documents: []string{unpaid}, code: session.ExitError, told: []string{
			"no owner is named to pay for the 8 GPUs of Pod/lone: add annotation rq.davidlangworthy.io/owner to Pod/lone"}},
		"an owner that the scheduler does not read": {documents: []string{farm}, code: session.ExitError, told: []string{
			"no owner is named to pay for the 8 GPUs", "what Farm/farm says does not count, since the scheduler may " +
				"not read it"}},
		"an owner that an administrator has it read": {documents: []string{farm}, spoil: func(s *clitest.Server) {
			s.Set(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: group.ReaderRole}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"example.com"}, Resources: []string{"farms"}, Verbs: []string{"get"}}}})
		}, told: []string{"now, with 8 GPUs"}},
		"a CronJob": {documents: []string{cronJob}, told: []string{"now, with 8 GPUs"}},
		"the namespace pays": {documents: []string{unpaid}, spoil: func(s *clitest.Server) {
			s.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rai",
				Annotations: map[string]string{"rq.davidlangworthy.io/owner": "org:ai:rai"}}})
		}, told: []string{"rai/Pod/lone", "now, with 8 GPUs"}},
		"the namespace will pay": {documents: []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: rai, " +
			"annotations: " +
			"{rq.davidlangworthy.io/owner: \"org:ai:rai\"}}", unpaid}, told: []string{"rai/Pod/lone", "now, with 8 GPUs"}},
		"a value that will not do": {documents: []string{strings.Replace(jobSet, "annotations: {",
			"annotations: {rq.davidlangworthy.io/checkpoint: soon, ", 1)}, code: session.ExitError,
			told: []string{`annotation rq.davidlangworthy.io/checkpoint of JobSet/llm is "soon", which is not a duration`}},
		"without the right": {documents: []string{jobSet}, code: session.ExitError, spoil: func(s *clitest.Server) {
			s.NobodyUses = "org:ai:rai"
		}, told: []string{"service account default of namespace rai may not spend as org:ai:rai: ask an " +
			"administrator"}},
		"who may not ask": {documents: []string{jobSet}, spoil: func(s *clitest.Server) {
			refusing(s, "create", "localsubjectaccessreviews")
		}, told: []string{"now, with 16 GPUs", "whether service account default may spend as org:ai:rai, which you may not " +
			"check"}},
		"without schedulerName": {documents: []string{strings.Replace(jobSet, "schedulerName: jobtree, ", "", 1)},
			code: session.ExitError, told: []string{"JobSet/llm: its pods are for another scheduler: add schedulerName: " +
				"jobtree " +
				"to spec.replicatedJobs[0].template.spec.template.spec"}},
		"without a name": {documents: []string{strings.Replace(job, "name: train", "generateName: train-", 1)},
			code: session.ExitError, told: []string{"Job train-*: metadata.generateName: a group of pods is known by a name"}},
		"there already": {documents: []string{jobSet}, code: session.ExitError, spoil: func(s *clitest.Server) {
			run := clitest.Stands(clitest.RunOf("", 16, 0, clitest.Runs(16)), "jobset.x-k8s.io", "JobSet", "llm")
			s.Set(&run)
		}, told: []string{`JobSet/llm is there already: see "kubectl runs plan -n rai JobSet/llm"`}},
		"nothing that asks": {documents: []string{"apiVersion: v1\nkind: Service\nmetadata: {name: s}"},
			code: session.ExitError, told: []string{"there is no Run in", "nothing that makes pods which ask for GPUs"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := clitest.NewServer(t, fleetOf(2, 800)...)
			if c.spoil != nil {
				c.spoil(server)
			}
			args := append([]string{"-f", written(t, c.documents...)}, strings.Fields(c.args)...)
			said := clitest.Do(t, server, Command, args...)
			for _, want := range c.told {
				if said.Code != c.code || !strings.Contains(said.Out+said.Err, want) {
					t.Errorf("lacks %q: code %d\n%s\n%s", want, said.Code, said.Out, said.Err)
				}
			}
			for _, request := range server.Asked("create ") {
				if request != "create localsubjectaccessreviews" {
					t.Errorf("something was made: %s", request)
				}
			}
		})
	}
}
