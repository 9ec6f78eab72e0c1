package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestRequests counts what a Run of one pod has the scheduler write, from its submission to its end, by the API
// server's audit log. What is not about one Run comes beside it: the Budget's status is written at most once a second,
// however many Runs there are.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 8)
	want := map[string]int{
		"create pods": 1, "create pods/binding": 1,
		"create leases": 1, "update leases/status": 1,
		"update runs/status": 2, // it runs, it has completed
	}
	for _, run := range []string{"first", "second"} { // what is written late of the first is there after the second
		s.submit(run, 8, annotated("pod-complete.stage.kwok.x-k8s.io/delay", "1s"))
		s.await(run, rqv1.RunRunning, "bound 8 GPUs")
		s.await(run, rqv1.RunCompleted, "all 1 pods completed")
		s.settled()
	}
	for _, run := range []string{"first", "second"} {
		if diff := cmp.Diff(want, s.writesOf(run)); diff != "" {
			t.Errorf("what the scheduler writes of Run %s (-want +got):\n%s", run, diff)
		}
	}
}

// writesOf counts the scheduler's writes in the site's namespace about a Run, by verb and resource. All of them that
// the API server took or refused count.
func (s *site) writesOf(run string) map[string]int {
	s.t.Helper()
	count := map[string]int{}
	if err := s.audited(func(event *auditv1.Event) {
		if about := event.ObjectRef; strings.HasPrefix(about.Name, run) && event.User.Username == scheduler.UserName {
			count[wrote(event)]++
		}
	}); err != nil {
		s.t.Fatal(err)
	}
	return count
}

// wrote says what was done to what kind of object.
func wrote(event *auditv1.Event) string {
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	return event.Verb + " " + resource
}

// tellWrites logs what became of pods of the site by whom: what the scheduler wrote, and what others deleted.
func (s *site) tellWrites() {
	if err := s.audited(func(event *auditv1.Event) {
		if about := event.ObjectRef; about.Resource == "pods" {
			s.t.Logf("%s: at %s %s: %s %s, answered %d", s.namespace,
				event.RequestReceivedTimestamp.UTC().Format("15:04:05.000"),
				event.User.Username, wrote(event), about.Name, event.ResponseStatus.Code)
		}
	}); err != nil && !os.IsNotExist(err) {
		s.t.Log(err)
	}
}

// audited visits what is on record of the site's namespace, in order.
func (s *site) audited(visit func(*auditv1.Event)) error {
	file, err := os.Open(s.AuditLog())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("%w: %s", err, lines.Text())
		}
		if about := event.ObjectRef; about != nil && about.Namespace == s.namespace && event.ResponseStatus != nil {
			visit(&event)
		}
	}
	return lines.Err()
}
