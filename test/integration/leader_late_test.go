package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// slowPath is a way to the API server on which the GPU leases that a scheduler creates stay, once they are held, until
// they are let go.
type slowPath struct {
	t    *testing.T
	url  string
	let  chan struct{}
	lock sync.Mutex
	held int
	// answers are what the API server has answered to those that were held.
	answers []string
}

// newSlowPath has the requests of whoever takes it be the scheduler's own.
func newSlowPath(t *testing.T, c *cluster) *slowPath {
	t.Helper()
	kubeconfig, err := c.KubeconfigForServiceAccount(t.Context(), controlplane.Namespace, controlplane.SchedulerAccount)
	if err != nil {
		t.Fatal(err)
	}
	config, err := controlplane.RESTConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &slowPath{t: t, let: make(chan struct{})}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ModifyResponse: p.hear,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if opens(r) {
			p.hold()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.CloseClientConnections)
	p.url = server.URL
	return p
}

// opens reports whether a request is to create a GPU lease for good.
func opens(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/apis/"+rqv1.GroupName+"/") &&
		strings.HasSuffix(r.URL.Path, "/leases") && r.URL.Query().Get("dryRun") == ""
}

func (p *slowPath) hold() {
	p.lock.Lock()
	p.held++
	p.lock.Unlock()
	<-p.let
}

// hear notes an answer.
func (p *slowPath) hear(answer *http.Response) error {
	if !opens(answer.Request) {
		return nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	p.lock.Lock()
	defer p.lock.Unlock()
	p.answers = append(p.answers, fmt.Sprintf("%d %s", answer.StatusCode, body))
	return nil
}

// awaitHeld waits until so many creations are held, and awaitAnswers until so many are answered.
func (p *slowPath) awaitHeld(count int) {
	p.t.Helper()
	eventually(p.t, "GPU leases on their way", func() error {
		p.lock.Lock()
		defer p.lock.Unlock()
		return exactly(p.held, count)
	})
}

func (p *slowPath) awaitAnswers(count int) []string {
	p.t.Helper()
	eventually(p.t, "answers", func() error {
		p.lock.Lock()
		defer p.lock.Unlock()
		return exactly(len(p.answers), count)
	})
	return p.answers
}

func exactly(got, want int) error {
	if got != want {
		return fmt.Errorf("%d, want %d", got, want)
	}
	return nil
}

// TestLeasesOfAFormerLeaderComeTooLate has the leader be stopped while the GPU leases of a Run are on their way, and
// arrive once the standby has given the nodes to another Run: the API server takes none of them.
func TestLeasesOfAFormerLeaderComeTooLate(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, quickElection, map[string]any{"gangDeadline": "10s"})
	s := newSite(t, c, 1, 4, 1000)
	path := newSlowPath(t, c)
	first, err := c.StartScheduler(t.Context(), "first", "--master="+path.url)
	if err != nil {
		t.Fatal(err)
	}
	s.submit("early", 32, inPods(8))
	path.awaitHeld(4)
	second, err := c.StartScheduler(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.removeRun("early")
	s.submit("late", 32, inPods(8))
	eventually(t, "the standby is to lead", func() error {
		gauges, err := c.counters(t.Context(), second, "leader_election_master_status")
		if err == nil && gauges["leader_election_master_status"] != 1 {
			err = errors.New("it does not lead")
		}
		return err
	})
	s.await("late", rqv1.RunRunning, "bound")
	close(path.let)
	for _, answer := range path.awaitAnswers(4) {
		if !strings.HasPrefix(answer, "403 ") || !strings.Contains(answer, "does not lead") {
			t.Errorf("a GPU lease of the former leader: %s", answer)
		}
	}
	s.settled()
}
