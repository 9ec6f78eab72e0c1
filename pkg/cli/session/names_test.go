package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// theirRuns are Runs that stand for groups: two of them for PodGroups of the same name.
func theirRuns() (all []client.Object, names map[string]string) {
	names = map[string]string{}
	of := func(api, kind, name string) {
		run := clitest.Stands(clitest.RunOf("", 8, 0, clitest.Runs(8)), api, kind, name)
		all, names[api+"/"+kind+"/"+name] = append(all, &run), run.Name
	}
	of("jobset.x-k8s.io", "JobSet", "llm")
	of("scheduling.k8s.io", "PodGroup", "gang")
	of("scheduling.x-k8s.io", "PodGroup", "gang")
	of("", "PodGroup", "one")
	of("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "serve-0")
	of("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "serve-1")
	for i, above := range map[int]string{0: "TrainJob.trainer.kubeflow.org/llm,Workflow/llm",
		4: "LeaderWorkerSet.leaderworkerset.x-k8s.io/serve", 5: "LeaderWorkerSet.leaderworkerset.x-k8s.io/serve"} {
		all[i].SetAnnotations(map[string]string{rqv1.AnnotationMadeFor: above})
	}
	next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "rai", Name: "web-b",
		Labels: map[string]string{rqv1.LabelRun: "own"}}}
	own := clitest.RunOf("own", 8, 0, clitest.Runs(8))
	return append(all, next, &own), names
}

// TestRunsByKindAndName has the command line name Runs in every way, and the command be given their own names.
func TestRunsByKindAndName(t *testing.T) {
	objects, names := theirRuns()
	server := clitest.NewServer(t, objects...)
	llm := names["jobset.x-k8s.io/JobSet/llm"]
	says := func(s *session.Session) *cobra.Command {
		cmd := &cobra.Command{Use: "says"}
		cmd.Flags().BoolP("all-namespaces", "A", false, "")
		cmd.RunE = s.OnRuns(func(ctx context.Context, own []string) error {
			for _, name := range own {
				cmd.Print(name + " ")
			}
			c, namespace, _, err := s.Connect()
			if err != nil || len(own) == 0 {
				return err
			}
			err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: own[0]}, &rqv1.Run{})
			return s.NotFoundInWords(err, namespace, own[0])
		})
		return cmd
	}
	for typed, want := range map[string]string{
		"own":                              "own ",
		"JobSet/llm own":                   llm + " own ",
		"jobset/llm":                       llm + " ",
		"JOBSET.jobset.x-k8s.io/llm":       llm + " ",
		"run/own":                          "own ",
		"run.rq.davidlangworthy.io/" + llm: llm + " ",
		"PodGroup.scheduling.k8s.io/gang":  names["scheduling.k8s.io/PodGroup/gang"] + " ",
		"podgroup/one":                     names["/PodGroup/one"] + " ",
		"-A own":                           "own ",
		"podgroup/gang": "!podgroup/gang is several Runs: name one of them, " +
			names["scheduling.k8s.io/PodGroup/gang"] + ", " +
			names["scheduling.x-k8s.io/PodGroup/gang"],
		"pod/web-b":     "own ",
		"job/none":      `!Run "job/none" not found in namespace "rai"; "kubectl runs list -A" lists those that you may read`,
		"podgroup/none": `!Run "podgroup/none" not found in namespace "rai"`,
		"Deployment/x": `!"Deployment/x" does not name a Run of namespace "rai": "kubectl runs list -n rai" shows the ` +
			`names of those that you may read`,
		"deployment/x": `!Run "x" not found in namespace "deployment", and "deployment" is no kind of which Runs are; ` +
			`"kubectl runs list -A"`,
		"trainjob/llm":                      llm + " ",
		"TrainJob.trainer.kubeflow.org/llm": llm + " ",
		"trainjob.example.com/llm":          `!does not name a Run`,
		"leaderworkerset/serve":             "!is several Runs: name one of them, ",
		"LeaderWorkerSet/serve-1":           names["leaderworkerset.x-k8s.io/LeaderWorkerSet/serve-1"] + " ",
		"/llm":                              `!"/llm" does not name a Run: give its name, NAMESPACE/NAME, or KIND/NAME`,
		"jobset/":                           `!"jobset/" does not name a Run`,
		"jobset/a/b":                        `!"jobset/a/b" does not name a Run`,
		"rai/own":                           "own ",
		"rai/own rai/" + llm:                "own " + llm + " ",
		"rai/own own":                       "own own ",
		"rai/JobSet/llm":                    llm + " ",
		"mm/own":                            `!Run "own" not found in namespace "mm"`,
		"mm/jobset/llm":                     `!Run "jobset/llm" not found in namespace "mm"`,
		"own mm/own":                        "!own and mm/own are in two namespaces: name Runs of one",
		"mm/own own":                        "!mm/own and own are in two namespaces: name Runs of one",
		"mm/own jobset/llm":                 "!mm/own and jobset/llm are in two namespaces: name Runs of one",
		"mm/own mm/own other/own":           "!mm/own and other/own are in two namespaces: name Runs of one",
		"mm/own -n mm own":                  `!Run "own" not found in namespace "mm"`,
		"-n rai mm/own":                     `!mm/own is in namespace "mm", and -n says "rai": leave one of them out`,
		"-n rai rai/own":                    "own ",
		"-A jobset/llm":                     "!jobset/llm is a name within one namespace: leave out -A",
	} {
		said := clitest.DoHere(t, server, says, strings.Fields(typed)...)
		problem, fails := strings.CutPrefix(want, "!")
		switch {
		case fails && (said.Code == 0 || !strings.Contains(said.Err, problem)):
			t.Errorf("%s: %+v, want %s", typed, said, problem)
		case !fails && (said.Code != 0 || said.Out != want):
			t.Errorf("%s: %+v, want %s", typed, said, want)
		}
	}
}

// TestAKindThatMayBeANamespace has somebody who may read his own namespace alone name what owns a Run's pods, of a kind
// of which Runs are not.
func TestAKindThatMayBeANamespace(t *testing.T) {
	server := clitest.NewServer(t)
	server.Before = func(request string) error {
		if strings.HasPrefix(request, "get runs/x") {
			return clitest.Forbidden("get", "runs")
		}
		return nil
	}
	said := clitest.DoHere(t, server, func(s *session.Session) *cobra.Command {
		return &cobra.Command{Use: "says", RunE: s.OnRuns(func(ctx context.Context, own []string) error {
			c, namespace, _, err := s.Connect()
			if err != nil {
				return err
			}
			err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: own[0]}, &rqv1.Run{})
			return s.NotFoundInWords(err, namespace, own[0])
		})}
	}, "deployment/x")
	if said.Code == 0 || !strings.Contains(said.Err, `; "deployment" is no kind of which Runs are`) {
		t.Errorf("%+v", said)
	}
}

// TestCompletionByKindAndName offers what people call a Run, in the case in which they begin, or its own name where
// they begin with that.
func TestCompletionByKindAndName(t *testing.T) {
	objects, names := theirRuns()
	server := clitest.NewServer(t, objects[0], objects[3], objects[len(objects)-1])
	for typed, want := range map[string][]string{
		"":           {"JobSet/llm", "PodGroup/one", "own"},
		"jobset/l":   {"jobset/llm"},
		"JoBs":       {"JoBset/llm"},
		"JobSet/L":   nil,
		"o":          {"own"},
		"jobset-llm": {names["jobset.x-k8s.io/JobSet/llm"]},
	} {
		offers := func(s *session.Session, cmd *cobra.Command, args []string) (out []string) {
			all, _ := s.CompleteRuns(cmd, args, typed)
			for _, name := range all {
				if strings.HasPrefix(name, typed) { // shells offer no other
					out = append(out, name)
				}
			}
			return out
		}
		said := clitest.Do(t, server, completing(offers))
		if diff := cmp.Diff(strings.Join(want, " "), said.Out); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
}

// TestShow renames in all texts of an answer, and in nothing that only looks like a name.
func TestShow(t *testing.T) {
	objects, names := theirRuns()
	server := clitest.NewServer(t, objects...)
	llm := names["jobset.x-k8s.io/JobSet/llm"]
	type inner struct{ For rqv1.NamespacedName }
	type answer struct {
		Words   []string
		Of      *inner
		private string
	}
	shown := answer{Words: []string{"rai/" + llm + ": waits behind " + llm + ".", llm + "-r0", "x" + llm, "own"},
		Of: &inner{rqv1.NamespacedName{Namespace: "rai", Name: llm}}, private: llm}
	clitest.Do(t, server, func(s *session.Session) *cobra.Command {
		return &cobra.Command{Use: "shows", RunE: s.RunE(func(ctx context.Context, _ []string) error {
			c, namespace, _, err := s.Connect()
			session.Show(ctx, c, namespace, &shown)
			return err
		})}
	})
	want := answer{Words: []string{"rai/JobSet/llm: waits behind JobSet/llm.", llm + "-r0", "x" + llm, "own"},
		Of: &inner{rqv1.NamespacedName{Namespace: "rai", Name: "JobSet/llm"}}, private: llm}
	if diff := cmp.Diff(want, shown, cmp.AllowUnexported(answer{}, inner{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
