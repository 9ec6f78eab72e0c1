package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// everywhere is a command that prints the Runs of all namespaces, and how many GPU leases there are.
func everywhere(s *session.Session) *cobra.Command {
	return &cobra.Command{Use: "everywhere", RunE: s.RunE(func(ctx context.Context, _ []string) error {
		c, _, _, err := s.Connect()
		if err != nil {
			return err
		}
		var runs rqv1.RunList
		if err := s.List(ctx, c, "", &runs); err != nil {
			return err
		}
		var leases rqv1.LeaseList
		if err := s.List(ctx, c, "", &leases, session.LeasesOpen); err != nil {
			return err
		}
		for i := range runs.Items {
			fmt.Fprint(s.Out, runs.Items[i].Namespace, "/", runs.Items[i].Name, " ")
		}
		fmt.Fprint(s.Out, len(leases.Items))
		return nil
	})}
}

// TestWhoMayNotReadEverywhere reads where he may, of the namespaces that he knows, and is told which these are.
func TestWhoMayNotReadEverywhere(t *testing.T) {
	const only = "Showing namespaces aud, rai only: you may not read all namespaces; choose another one with -n.\n"
	var objects []client.Object
	for _, namespace := range []string{"rai", "aud", "mm", "far"} {
		run := clitest.RunOf("run", 8, 0, clitest.Runs(8))
		run.Namespace = namespace
		objects = append(objects, &run)
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	waits := clitest.RunOf("waits", 8, 0, clitest.Poor())
	waits.Namespace = "aud"
	r := clitest.ReservationOf(&waits, 8)
	objects = append(objects, &r)
	far := filepath.Join(t.TempDir(), "contexts")
	contexts := "{apiVersion: v1, kind: Config, clusters: [{name: ours, cluster: {server: x}}], contexts: [" +
		"{name: here, context: {cluster: ours, namespace: rai}}, {name: there, context: {cluster: ours, namespace: far}}, " +
		"{name: elsewhere, context: {cluster: another, namespace: mm}}]}"
	if err := os.WriteFile(far, []byte(contexts), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		readable []string // nil for all
		refused  string
		args     []string
		want     clitest.Said
	}{
		"who may": {want: clitest.Said{Out: "aud/run far/run mm/run rai/run 0"}},
		"by Reservations": {readable: []string{"rai", "aud", "far"},
			want: clitest.Said{Out: "aud/run rai/run 0", Err: only}},
		"without Reservations": {readable: []string{"rai", "aud"}, refused: "list reservations",
			want: clitest.Said{Out: "rai/run 0", Err: strings.Replace(only, "namespaces aud, rai", "namespace rai", 1)}},
		"by contexts": {readable: []string{"rai", "far"}, args: []string{"--kubeconfig", far, "--context", "here"},
			want: clitest.Said{Out: "far/run rai/run 0", Err: strings.Replace(only, "aud, rai", "far, rai", 1)}},
		"by the list of namespaces": {readable: []string{"", "mm", "rai"},
			want: clitest.Said{Out: "mm/run rai/run 0", Err: strings.Replace(only, "aud, rai", "mm, rai", 1)}},
	} {
		server := clitest.NewServer(t, objects...)
		server.Readable = c.readable
		server.Before = func(request string) error {
			if request == c.refused {
				return clitest.Forbidden("list", "reservations")
			}
			return nil
		}
		if diff := cmp.Diff(c.want, clitest.Do(t, server, everywhere, c.args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	server := clitest.NewServer(t, objects...)
	server.Readable = []string{"far"}
	said := clitest.Do(t, server, everywhere)
	if said.Code != session.ExitError ||
		!strings.Contains(said.Err, "nor in any of the namespaces aud, rai; name one with -n") {
		t.Errorf("nothing that is known may be read: %+v", said)
	}
}
