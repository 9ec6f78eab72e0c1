package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

func nodeOf(name string) *corev1.Node {
	gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "r", "cluster": "c",
		"fabric.domain": "d", "gpu.flavor": "H100"}}, Status: corev1.NodeStatus{Capacity: gpus, Allocatable: gpus,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// over is a dashboard over an API server, an hour after noon.
func over(server *clitest.Server) *dashboard {
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer, flags.Namespace = &server.URL, clitest.Ptr("rai")
	return &dashboard{Session: &session.Session{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Flags: flags,
		Now: func() time.Time { return clitest.Noon.Add(time.Hour) }}}
}

// begun serves a dashboard over an API server until the test ends.
func begun(t *testing.T, server *clitest.Server) string {
	address, _ := watching(t, server)
	return address
}

// watching does likewise, and returns what is watched.
func watching(t *testing.T, server *clitest.Server) (address string, w *watched) {
	ctx, cancel := context.WithCancel(context.Background())
	d := over(server)
	c, _, _, err := d.Connect()
	if err != nil {
		t.Fatal(err)
	}
	args, _, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	watched, err := d.watch(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	frames := newFrames(watched, args, d.Now)
	go frames.run(ctx)
	site := httptest.NewServer(&site{frames: frames, namespace: "rai", patience: eventsUnread})
	t.Cleanup(func() {
		cancel()
		site.CloseClientConnections()
		site.Close()
	})
	return site.URL, watched
}

// updates reads what is sent to a page.
type updates struct {
	t      *testing.T
	lines  *bufio.Scanner
	tables map[string]map[string]json.RawMessage
	about  about
}

func reading(t *testing.T, address string) *updates {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	return &updates{t: t, lines: lines, tables: map[string]map[string]json.RawMessage{}}
}

// until reads updates until something is so.
func (u *updates) until(what string, so func() bool) {
	u.t.Helper()
	for !so() {
		if !u.lines.Scan() {
			u.t.Fatalf("not sent: %s: %v; there is %s", what, u.lines.Err(), u.tables)
		}
		data, ok := strings.CutPrefix(u.lines.Text(), "data: ")
		if !ok || strings.Contains(data, `"namespace":"rai"}`) && !strings.Contains(data, "tables") {
			continue
		}
		var sent update
		if err := json.Unmarshal([]byte(data), &sent); err != nil {
			u.t.Fatal(err)
		}
		u.about = sent.about
		for table, changed := range sent.Tables {
			if u.tables[table] == nil {
				u.tables[table] = map[string]json.RawMessage{}
			}
			for key, row := range changed.Set {
				u.tables[table][key] = row
			}
			for _, key := range changed.Gone {
				delete(u.tables[table], key)
			}
		}
	}
}

func (u *updates) node(name string) (n picture.Node) {
	if row := u.tables[tableNodes][name]; row != nil {
		if err := json.Unmarshal(row, &n); err != nil {
			u.t.Fatal(err)
		}
	}
	return n
}

// TestWhatChangesIsSent follows a page from its first frame on: a GPU lease opens and closes, and a Run goes.
func TestWhatChangesIsSent(t *testing.T) {
	run := clitest.RunOf("train", 8, 0, clitest.Runs(8))
	server := clitest.NewServer(t, nodeOf("a"), nodeOf("b"), &run)
	u := reading(t, begun(t, server))
	u.until("all that there is", func() bool { return len(u.tables[tableNodes]) == 2 && len(u.tables[tableRuns]) == 1 })
	if diff := cmp.Diff([]picture.Span{{Use: picture.Free, GPUs: 8}}, u.node("a").Spans); diff != "" {
		t.Error(diff)
	}
	lease := clitest.LeaseOf(&run, "train-0", 0, "a")
	server.Set(&lease)
	u.until("a GPU lease", func() bool { n := u.node("a"); return n.GPUs(picture.Active) == int(lease.GPUs()) })
	closed := clitest.Closed(lease, time.Minute, rqv1.ClosedCompleted)
	server.Set(&closed)
	u.until("that it is closed", func() bool { n := u.node("a"); return n.GPUs(picture.Active) == 0 })
	server.Delete(&run)
	u.until("that the Run is gone", func() bool { return len(u.tables[tableRuns]) == 0 })
	server.BreakWatches()
	server.Delete(nodeOf("b"))
	u.until("what changed while nothing was watched", func() bool { return len(u.tables[tableNodes]) == 1 })
}

// TestWhatMayNotBeReadIsSaid begins a dashboard for somebody who may read one namespace.
func TestWhatMayNotBeReadIsSaid(t *testing.T) {
	mine, theirs := clitest.RunOf("train", 8, 0, clitest.Runs(8)), clitest.RunOf("other", 8, 0, clitest.Runs(8))
	theirs.Namespace = "others"
	server := clitest.NewServer(t, nodeOf("a"), &mine, &theirs)
	server.Readable = []string{mine.Namespace}
	u := reading(t, begun(t, server))
	u.until("a Run", func() bool { return len(u.tables[tableRuns]) == 1 })
	if u.tables[tableRuns][mine.Namespace+"/train"] == nil {
		t.Errorf("%s", u.tables[tableRuns])
	}
	if len(u.about.Unread) == 0 {
		t.Error("nobody is told what may not be read")
	}
}

// TestAnAPIServerThatIsAway is told, and told no more when it is back.
func TestAnAPIServerThatIsAway(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("a"))
	var away atomic.Bool
	server.Before = func(request string) error {
		if away.Load() {
			return apierrors.NewServiceUnavailable(request)
		}
		return nil
	}
	u := reading(t, begun(t, server))
	u.until("a node", func() bool { return len(u.tables[tableNodes]) == 1 })
	away.Store(true)
	server.BreakWatches()
	u.until("that it is away", func() bool { return u.about.Since != nil })
	away.Store(false)
	u.until("that it is back", func() bool { return u.about.Since == nil })
}

// TestNobodyLooks makes frames while somebody looks only; whoever comes is shown what is so then.
func TestNobodyLooks(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("a"))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	d := over(server)
	c, _, _, err := d.Connect()
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.watch(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	args, _, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan time.Time, 100)
	f := newFrames(w, args, func() time.Time { made <- time.Now(); return d.Now() })
	go f.run(ctx)
	nodes := func() int {
		for f.latest().tables == nil || len(f.latest().tables[tableNodes]) == 0 {
			<-f.latest().newer
		}
		return len(f.latest().tables[tableNodes])
	}
	done := f.look()
	if got := nodes(); got != 1 {
		t.Errorf("%d nodes", got)
	}
	done()
	deadline := time.After(2 * leastPause) // by then the frame is made that was on its way
	for waiting := true; waiting; {
		select {
		case <-made:
		case <-deadline:
			waiting = false
		}
	}
	server.Set(nodeOf("b"), nodeOf("c"))
	select {
	case <-made:
		t.Error("a frame is made, and nobody looks")
	case <-time.After(3 * leastPause):
	}
	defer f.look()()
	if got := nodes(); got != 3 {
		t.Errorf("%d nodes are shown first, of 3", got)
	}
}
