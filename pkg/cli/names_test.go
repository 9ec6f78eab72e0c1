package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// theirs is an API server with a Run that stands for JobSet llm, and runs, and one for JobSet next, which waits until
// it may cut the first.
func theirs(t *testing.T) (server *clitest.Server, llm string) {
	runs := clitest.Stands(clitest.RunOf("", 16, 0, clitest.Runs(16)), "jobset.x-k8s.io", "JobSet", "llm")
	waits := clitest.Stands(clitest.RunOf("", 64, 0, clitest.Waits("InsufficientGPUs", "short")), "jobset.x-k8s.io",
		"JobSet", "next")
	r := clitest.ReservationOf(&waits, 8, rqv1.Conflict{Run: rqv1.NamespacedName{Namespace: "rai", Name: runs.Name},
		Owner: "org:ai:rai", Action: rqv1.CutLottery, GPUs: 16, Probability: "1"})
	clitest.PromisedTo(&waits, &r)
	runs.Status.AtRisk = []rqv1.RunRisk{{Reservation: "rai/" + r.Name, At: metav1.NewTime(r.Spec.EarliestStart.Time),
		Probability: "1"}}
	lease := clitest.As(clitest.LeaseOf(&runs, "l-0", 0, "n0"), rqv1.RoleActive, 0)
	lease.Labels[rqv1.LabelRun] = runs.Name
	return clitest.NewServer(t, &runs, &waits, &r, &lease), runs.Name
}

// says runs the whole command line.
func says(t *testing.T, server *clitest.Server, line string) clitest.Said {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(line), "-s", server.URL, "-n", "rai", "--kubeconfig", kubeconfig)
	code := Execute(t.Context(), NewCommand(streams), args, errOut)
	return clitest.Said{Out: out.String(), Err: errOut.String(), Code: code}
}

// TestKindAndName has every command name Runs that stand for others' pods by KIND/NAME, and take that name.
func TestKindAndName(t *testing.T) {
	for line, want := range map[string]string{
		"list":                                   `(?m)^JobSet/llm +org:ai:rai`,
		"leases":                                 `(?m)^JobSet/llm +rai/west-h100`,
		"leases --pods":                          `(?m)^JobSet/llm +Active`,
		"leases jobset/llm":                      `(?m)^JobSet/llm +rai/west-h100`,
		"leases jobset/gone":                     `^$`,
		"plan":                                   `(?m)^JobSet/next +64`,
		"plan jobset/next":                       `(?s)RUN +rai/JobSet/next.*rai/JobSet/llm +org:ai:rai`,
		"plan jobset/llm":                        `(?s)RUN +rai/JobSet/llm`,
		"explain JobSet/next":                    `(?s)^Run rai/JobSet/next is Pending.*rai/JobSet/llm`,
		"explain JobSet/llm":                     `(?s)^Run rai/JobSet/llm is Running.*to make room for rai/JobSet/next`,
		"budgets explain jobset/llm":             `^Run rai/JobSet/llm of org:ai:rai is Running`,
		"watch jobset/llm --until Running":       `(?m)  JobSet/llm  Running`,
		"history":                                `(?m)^JobSet/llm +[A-Z][a-z]+ +Jan 2 2030`,
		"history jobset/llm":                     `(?m)^JobSet/llm +[A-Z][a-z]+ +Jan 2 2030`,
		"logs jobset/llm":                        `^$`,
		"cancel jobset/llm":                      `^$`,
		"suspend jobset/llm":                     `^Run JobSet/llm is suspended now`,
		"resume jobset/llm":                      `^Run JobSet/llm is not suspended already`,
		"checkpointed jobset/llm":                `^Run jobset/llm saved its work`,
		"grow jobset/llm --by 8":                 `^$`,
		"shrink jobset/llm --by 8":               `^$`,
		"list -o name":                           `(?m)^run.rq.davidlangworthy.io/jobset-llm-[0-9a-f]{8}$`,
		"list -o jsonpath={.items[0].spec.pods}": `"name":"llm"`,
		"plan jobset/llm -o name":                `^run.rq.davidlangworthy.io/jobset-llm-[0-9a-f]{8}\n$`,
	} {
		t.Run(line, func(t *testing.T) {
			server, own := theirs(t)
			said := says(t, server, line)
			if !regexp.MustCompile(want).MatchString(said.Out) {
				t.Errorf("%+v, want %s", said, want)
			}
			if strings.Contains(said.Out+said.Err, own) != strings.Contains(line, "-o name") {
				t.Errorf("its own name is shown or not:\n%s%s", said.Out, said.Err)
			}
		})
	}
}

// TestProgramsGetOwnNames: what programs read names objects by the names that they have.
func TestProgramsGetOwnNames(t *testing.T) {
	server, own := theirs(t)
	for _, line := range []string{"plan jobset/llm", "explain jobset/llm", "budgets explain jobset/llm"} {
		said := says(t, server, line+" -o json")
		var got struct{ Run string }
		if err := json.Unmarshal([]byte(said.Out), &got); err != nil || got.Run != own {
			t.Errorf("%s: %v, %+v", line, err, said)
		}
	}
	if said := says(t, server, "grow jobset/none --by 8"); said.Code != session.ExitError ||
		!strings.Contains(said.Err, `Run "jobset/none" not found`) {
		t.Errorf("%+v", said)
	}
}
