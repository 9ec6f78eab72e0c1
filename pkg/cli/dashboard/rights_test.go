package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// TestARightThatIsLost is told as such, and what may not be read any more is not shown, until it may be read again.
func TestARightThatIsLost(t *testing.T) {
	run := clitest.RunOf("train", 8, 0, clitest.Runs(8))
	server := clitest.NewServer(t, nodeOf("a"), &run)
	var lost atomic.Bool
	server.Before = func(request string) error {
		if strings.HasSuffix(request, " runs") && lost.Load() {
			return clitest.Forbidden("list", "runs")
		}
		return nil
	}
	u := reading(t, begun(t, server))
	u.until("all that there is", func() bool { return len(u.tables[tableNodes]) == 1 && len(u.tables[tableRuns]) == 1 })
	lost.Store(true)
	server.BreakWatches()
	u.until("that Runs may not be read", func() bool {
		return slices.ContainsFunc(u.about.Unread, func(line string) bool {
			return strings.HasPrefix(line, "Runs: you may not read them any more")
		}) && len(u.tables[tableRuns]) == 0 && u.about.Since == nil
	})
	lost.Store(false)
	u.until("Runs again", func() bool { return len(u.tables[tableRuns]) == 1 && len(u.about.Unread) == 0 })
}

// TestRightsThatAreGained need no new start: those for another namespace, then for all, and what is lost of them again.
// What could be read all the time is shown once.
func TestRightsThatAreGained(t *testing.T) {
	mine, theirs := clitest.RunOf("train", 8, 0, clitest.Runs(8)), clitest.RunOf("other", 8, 0, clitest.Runs(8))
	theirs.Namespace = "others"
	waits := clitest.ReservationOf(&theirs, 8) // it tells of the namespace
	server := clitest.NewServer(t, nodeOf("a"), &mine, &theirs, &waits)
	server.Readable = []string{mine.Namespace}
	d := over(server)
	address, w := watching(t, server)
	u := reading(t, address)
	sees := func(what string, nodes, runs int, unread ...string) {
		t.Helper()
		c, _, _, err := d.Connect()
		if err != nil {
			t.Fatal(err)
		}
		w.askRights(t.Context())
		w.askGained(t.Context(), d.Session, c)
		u.until(what, func() bool {
			var kinds []string
			for _, line := range u.about.Unread {
				kinds = append(kinds, line[:strings.Index(line, ":")])
			}
			return len(u.tables[tableNodes]) == nodes && len(u.tables[tableRuns]) == runs && slices.Equal(kinds, unread)
		})
	}
	sees("one namespace", 0, 1, "nodes", "Runs", "GPU leases", "pods")
	sees("as much as before", 0, 1, "nodes", "Runs", "GPU leases", "pods")
	server.Permit([]string{mine.Namespace, theirs.Namespace})
	sees("two namespaces", 0, 2, "nodes", "Runs", "GPU leases", "pods")
	server.Permit(nil)
	sees("all", 1, 2)
	server.Permit([]string{theirs.Namespace})
	sees("one namespace, after all", 0, 1, "Runs", "GPU leases", "pods", "nodes")
	if got := len(w.sources()); got != 6 {
		t.Errorf("%d sources are read", got)
	}
	server.Permit(nil)
	sees("all again", 1, 2)
}

// TestALoginThatHasRunOut is told as such.
func TestALoginThatHasRunOut(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("a"))
	var over atomic.Bool
	server.Before = func(string) error {
		if over.Load() {
			return apierrors.NewUnauthorized("Unauthorized")
		}
		return nil
	}
	u := reading(t, begun(t, server))
	u.until("a node", func() bool { return len(u.tables[tableNodes]) == 1 })
	over.Store(true)
	server.BreakWatches()
	u.until("that the login is over", func() bool { return u.about.Since != nil && u.about.LoggedOut })
}

// TestARightThatIsLostInAWatch is noticed although the API server lets the watch go on that it would not let begin:
// what comes of it from then on is not shown either.
func TestARightThatIsLostInAWatch(t *testing.T) {
	run, other := clitest.RunOf("train", 8, 0, clitest.Runs(8)), clitest.RunOf("other", 8, 0, clitest.Runs(8))
	server := clitest.NewServer(t, nodeOf("a"), &run)
	var lost atomic.Bool
	server.Before = func(request string) error {
		if request == "list runs" && lost.Load() {
			return clitest.Forbidden("list", "runs")
		}
		return nil
	}
	address, w := watching(t, server)
	u := reading(t, address)
	u.until("all that there is", func() bool { return len(u.tables[tableNodes]) == 1 && len(u.tables[tableRuns]) == 1 })
	w.askRights(t.Context())
	if got := w.notRead(); got != nil {
		t.Errorf("nothing is lost: %v", got)
	}
	lost.Store(true)
	w.askRights(t.Context())
	u.until("that Runs may not be read", func() bool {
		return slices.Equal(u.about.Unread, []string{"Runs: you may not read them any more"}) &&
			len(u.tables[tableRuns]) == 0
	})
	server.Set(&other, nodeOf("b"))
	u.until("a node", func() bool { return len(u.tables[tableNodes]) == 2 })
	if len(u.tables[tableRuns]) > 0 {
		t.Errorf("a Run is shown that may not be read: %s", u.tables[tableRuns])
	}
	lost.Store(false)
	u.until("Runs again", func() bool { return len(u.tables[tableRuns]) == 2 && len(u.about.Unread) == 0 })
}

// TestWhoDoesNotSayWhatMayBeRead is no reason to show nothing.
func TestWhoDoesNotSayWhatMayBeRead(t *testing.T) {
	server := clitest.NewServer(t, nodeOf("a"))
	var silent atomic.Bool
	server.Before = func(request string) error {
		if silent.Load() && strings.HasPrefix(request, "create selfsubject") {
			return clitest.Forbidden("create", "selfsubjectaccessreviews")
		}
		return nil
	}
	address, w := watching(t, server)
	u := reading(t, address)
	u.until("a node", func() bool { return len(u.tables[tableNodes]) == 1 })
	silent.Store(true)
	w.askRights(t.Context())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w.askRights(over)
	if got := w.notRead(); got != nil || len(w.objects().Nodes) != 1 {
		t.Errorf("%v, %d nodes", got, len(w.objects().Nodes))
	}
}

// TestSinceWhenNothingIsRead is told by what was heard last, not by when that was noticed: an API server that hangs is
// found to be away late.
func TestSinceWhenNothingIsRead(t *testing.T) {
	w := &watched{dirty: make(chan struct{}, 1), broken: map[string]outage{}, lost: map[string]bool{}}
	s := &source{what: "nodes", in: &store{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: w.touch}}
	away := errors.New("net/http: TLS handshake timeout")
	w.told(s, away)
	if out, is := w.outage(); !is || time.Since(out.since) > time.Minute {
		t.Errorf("nothing has ever been heard: %v", out.since)
	}
	w.told(s, nil)
	s.in.UpdateResourceVersion("7")
	heard := time.Now().Add(-48 * time.Second)
	s.in.heard.Store(heard.UnixNano())
	for range 2 {
		w.told(s, away)
		if out, _ := w.outage(); !out.since.Equal(heard) {
			t.Errorf("since %v, want %v", out.since, heard)
		}
	}
	w.told(s, nil)
	w.told(s, away)
	if out, _ := w.outage(); time.Since(out.since) > 40*time.Second {
		t.Errorf("it has told something meanwhile, and is away since %v", out.since)
	}
}

// TestWhyNothingIsRead is told in words that are the same for each request.
func TestWhyNothingIsRead(t *testing.T) {
	of := func(err error) error { return &url.Error{Op: "Get", URL: "https://api:6443/x", Err: err} }
	for name, c := range map[string]struct {
		err   error
		why   string
		login bool
	}{
		"away": {of(errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")),
			"dial tcp 10.0.0.1:6443: connect: connection refused", false},
		"login": {of(errors.New("getting credentials: exec: executable aws failed with exit code 255")),
			"getting credentials: exec: executable aws failed with exit code 255", true},
		"401": {apierrors.NewUnauthorized("Unauthorized"), "Unauthorized", true},
	} {
		if got := outageOf(c.err); got.why != c.why || got.login != c.login {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
