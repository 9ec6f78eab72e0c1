package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// reads is a command that reads the Runs and prints nothing.
func reads(s *session.Session) *cobra.Command {
	return &cobra.Command{Use: "reads", RunE: s.RunE(func(ctx context.Context, _ []string) error {
		c, _, _, err := s.Connect()
		if err != nil {
			return err
		}
		return c.List(ctx, &rqv1.RunList{})
	})}
}

// TestWhatWentWrongInWords has an API server answer badly: the user is told what it was, and what to do next.
func TestWhatWentWrongInWords(t *testing.T) {
	invalid := func(causes ...string) error {
		var list field.ErrorList
		for _, c := range causes {
			list = append(list, field.Invalid(field.NewPath("spec", c), 0, "must not be"))
		}
		return apierrors.NewInvalid(schema.GroupKind{Group: rqv1.GroupName, Kind: "Run"}, "big", list)
	}
	for name, c := range map[string]struct {
		answer error
		told   []string
	}{
		"without the right": {clitest.Forbidden("list", "runs"),
			[]string{`User "ada" cannot list resource "runs"`, "ask an administrator for the right", "with -n"}},
		"credentials that have expired": {apierrors.NewUnauthorized("expired"),
			[]string{"does not accept these credentials", "--token"}},
		"jobtree is not installed": {clitest.NotServed,
			[]string{"does not know jobtree's kinds", "kubectl apply -k manifests"}},
		"one thing is wrong":  {invalid("a"), []string{"spec.a: "}},
		"two things are":      {invalid("a", "b"), []string{"\n  spec.a: ", "\n  spec.b: "}},
		"an API server's own": {errors.New("the disk is full"), []string{"the disk is full"}},
	} {
		server := clitest.NewServer(t)
		server.Before = func(string) error { return c.answer }
		said := clitest.Do(t, server, reads)
		for _, want := range c.told {
			if said.Code != session.ExitError || said.Out != "" || !strings.Contains(said.Err, want) {
				t.Errorf("%s: %+v lacks %q", name, said, want)
			}
		}
	}
	gone := clitest.NewServer(t)
	gone.URL = "http://127.0.0.1:1"
	if said := clitest.Do(t, gone, reads); !strings.Contains(said.Err, "cannot reach the API server") {
		t.Errorf("nobody listens: %+v", said)
	}
}

// completing is a command that prints what completion would offer.
func completing(offer func(s *session.Session, cmd *cobra.Command, args []string) []string) func(
	*session.Session) *cobra.Command {
	return func(s *session.Session) *cobra.Command {
		return &cobra.Command{Use: "offers", RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Print(strings.Join(offer(s, cmd, args), " "))
			return nil
		}}
	}
}

// TestCompletion offers what there is, without what is on the command line already; it is silent when it may not look.
func TestCompletion(t *testing.T) {
	runs := func(s *session.Session, cmd *cobra.Command, args []string) []string {
		names, _ := s.CompleteRuns(cmd, args, "")
		return names
	}
	more := func(s *session.Session, cmd *cobra.Command, args []string) []string {
		names, _ := s.CompleteMoreRuns(cmd, args, "")
		return names
	}
	reservations := func(s *session.Session, cmd *cobra.Command, args []string) []string {
		names, _ := s.CompleteReservations(cmd, args, "")
		return names
	}
	owners := func(s *session.Session, cmd *cobra.Command, args []string) []string {
		names, _ := s.CompleteOwners(cmd, args, "")
		return names
	}
	a, b, elsewhere := clitest.RunOf("a", 8, 0, clitest.Runs(8)), clitest.RunOf("b", 8, 0, clitest.Runs(8)),
		clitest.RunOf("c", 8, 0, clitest.Runs(8))
	elsewhere.Namespace = "mm"
	r := clitest.ReservationOf(&a, 8)
	server := clitest.NewServer(t, &a, &b, &elsewhere, &r)
	for name, owner := range map[string]rqv1.Owner{"x": "org:mm", "y": "org:ai", "z": "org:mm"} {
		server.Set(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: rqv1.BudgetSpec{Owner: owner}})
	}
	for name, c := range map[string]struct {
		offer func(s *session.Session, cmd *cobra.Command, args []string) []string
		args  []string
		want  string
	}{
		"Runs":                        {offer: runs, want: "a b"},
		"no second Run":               {offer: runs, args: []string{"a"}},
		"another Run":                 {offer: more, args: []string{"a"}, want: "b"},
		"Runs of another namespace":   {offer: runs, args: nil, want: "a b"},
		"Reservations":                {offer: reservations, want: "a-r0"},
		"owners, each once, in order": {offer: owners, want: "org:ai org:mm"},
	} {
		for _, may := range []bool{true, false} {
			server.Before = func(string) error {
				if may {
					return nil
				}
				return clitest.Forbidden("list", "runs")
			}
			want := clitest.Said{Out: c.want}
			if !may {
				want.Out = ""
			}
			if diff := cmp.Diff(want, clitest.Do(t, server, completing(c.offer), c.args...)); diff != "" {
				t.Errorf("%s, who may read: %v (-want +got):\n%s", name, may, diff)
			}
		}
	}
}

// TestWhoami names who asks, as the API server knows him, and is never without a name.
func TestWhoami(t *testing.T) {
	who := func(s *session.Session) *cobra.Command {
		return &cobra.Command{Use: "who", RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, _, err := s.Connect()
			cmd.Print(session.Whoami(cmd.Context(), c))
			return err
		}}
	}
	server := clitest.NewServer(t)
	if said := clitest.Do(t, server, who); said.Out != "ada" {
		t.Errorf("%+v", said)
	}
	server.Before = func(string) error { return clitest.Forbidden("create", "selfsubjectreviews") }
	if said := clitest.Do(t, server, who); said.Out != "an administrator" {
		t.Errorf("%+v", said)
	}
}

// TestWhatIsPrintedCanBeApplied gives each object its apiVersion and kind, which clients leave out.
func TestWhatIsPrintedCanBeApplied(t *testing.T) {
	run := clitest.RunOf("big", 8, 0, clitest.Runs(8))
	written, err := session.AsWritten(&run)
	if err != nil || written.GetKind() != "Run" || written.GetAPIVersion() != "rq.davidlangworthy.io/v1" {
		t.Errorf("%v, %v", written, err)
	}
	written, err = session.AsWritten(&corev1.Node{})
	if err != nil || written.GetKind() != "Node" || written.GetAPIVersion() != "v1" {
		t.Errorf("%v, %v", written, err)
	}
	if _, err := session.AsWritten(&metav1.PartialObjectMetadata{}); err == nil {
		t.Error("an object of no kind is printed")
	}
}
