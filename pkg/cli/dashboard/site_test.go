package dashboard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// oneConnection is a listener that has one connection to accept, which keeps nothing that is not read.
type oneConnection struct{ connections chan net.Conn }

func (l oneConnection) Accept() (net.Conn, error) {
	c, ok := <-l.connections
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l oneConnection) Close() error   { return nil }
func (l oneConnection) Addr() net.Addr { return &net.IPAddr{} }

// TestAPageThatReadsNothing is one that nobody looks at.
func TestAPageThatReadsNothing(t *testing.T) {
	d := over(clitest.NewServer(t, nodeOf("a")))
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	pages := newFrames(&watched{dirty: make(chan struct{}, 1)}, args, d.Now)
	go pages.run(t.Context())
	here, there := net.Pipe()
	defer here.Close()
	listener := oneConnection{make(chan net.Conn, 1)}
	listener.connections <- there
	server := &http.Server{Handler: &site{frames: pages, patience: 50 * time.Millisecond}}
	go server.Serve(listener)
	defer server.Close()
	defer close(listener.connections)
	if _, err := fmt.Fprint(here, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for looked := false; !looked || pages.lookedAt(); looked = looked || pages.lookedAt() {
		select {
		case <-deadline:
			t.Fatalf("the page reads nothing, and somebody looks: %v", looked)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestPortsThatCannotBeServedOn say what to do, before anything is read of the cluster.
func TestPortsThatCannotBeServedOn(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, number, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[string]string{
		number: "port " + number + " of 127.0.0.1 is used by another program, perhaps another dashboard: end that, choose " +
			"another port with --port, or leave --port out to take one that is free",
		"70000": "--port 70000 is no port: choose one from 1024 to 65535, or 0 for one that is free",
		"-1":    "--port -1 is no port: choose one from 1024 to 65535, or 0 for one that is free",
	} {
		server := clitest.NewServer(t)
		server.Before = func(request string) error {
			t.Errorf("port %s: %s is asked for", port, request)
			return nil
		}
		d := over(server)
		if d.port, err = strconv.Atoi(port); err != nil {
			t.Fatal(err)
		}
		d.noBrowser = true
		if err := d.run(t.Context(), nil); err == nil || err.Error() != want {
			t.Errorf("port %s: %v, want %s", port, err, want)
		}
	}
}

// TestFramesASecond counts how many frames are made while all changes all the time.
func TestFramesASecond(t *testing.T) {
	d := over(clitest.NewServer(t))
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{dirty: make(chan struct{})}
	made := make(chan time.Time, 100)
	pages := newFrames(w, args, func() time.Time { made <- time.Now(); return d.Now() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { pages.run(ctx); close(ended) }()
	<-time.After(2 * leastPause) // what waits for its turn does not save turns up
	defer pages.look()()
	for begun := time.Now(); time.Since(begun) < time.Second; {
		select {
		case w.dirty <- struct{}{}:
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	<-ended
	close(made)
	var times []time.Time
	for at := range made {
		times = append(times, at)
	}
	for i := 4; i < len(times); i++ {
		if within := times[i].Sub(times[i-4]); within < 4*leastPause*9/10 {
			t.Errorf("five frames within %v", within)
		}
	}
	if len(times) < 2 {
		t.Errorf("%d frames", len(times))
	}
}
