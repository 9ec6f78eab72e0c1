package dashboard

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const listed = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 75 1 0 100 0 0 10 0
   1: 0100007F:1F41 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 76 1 0 20 4 30 10 -1
   2: 0100007F:D431 0100007F:1F41 01 00000000:00000000 00:00000000 00000000  1001        0 77 1 0 20 4 30 10 -1
   3: 0100007F:D433 0100007F:1F41 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
`

const listed6 = `  sl  local_address rem_address   st tx rx tr tm retrnsmt uid
   0: 0000000000000000FFFF00000100007F:D432 0000000000000000FFFF00000100007F:1F41 01 0:0 00:0 0  1002        0 78
`

// Of the two ends of a connection the browser's counts, also where it has written its address as one of IPv6. One that
// its program has closed is listed as the superuser's.
func TestOwnersOfConnections(t *testing.T) {
	server := netip.MustParseAddrPort("127.0.0.1:8001")
	for client, want := range map[string]int{"127.0.0.1:54321": 1001, "127.0.0.1:54322": 1002, "127.0.0.1:54323": nobody,
		"127.0.0.1:1": -2} {
		got := -2
		for _, list := range []string{listed, listed6} {
			if uid, found := ownerOf(strings.NewReader(list), netip.MustParseAddrPort(client), server); found {
				got = uid
			}
		}
		if got != want {
			t.Errorf("%s: %d, want %d", client, got, want)
		}
	}
}

// TestWhoseRequest has requests come by connections of several users.
func TestWhoseRequest(t *testing.T) {
	within := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	g, address, err := newGuard("127.0.0.1:8001", within)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil).WithContext(ctx))
		return w.Code
	}
	by := func(uid int) context.Context { return context.WithValue(t.Context(), peer{}, uid) }
	if got := ask(by(os.Getuid() + 1)); got != http.StatusForbidden {
		t.Errorf("another user who has read the address: %d", got)
	}
	if got := ask(by(nobody)); got != http.StatusForbidden {
		t.Errorf("a connection that is closed: %d", got)
	}
	if got := ask(by(os.Getuid())); got != http.StatusSeeOther {
		t.Errorf("the user has been kept out, or the token is spent: %d", got)
	}
}

// TestAConnectionThatIsClosed has a program close its connection before it is looked at whose it is: what it has asked
// for before is not taken as the superuser's.
func TestAConnectionThatIsClosed(t *testing.T) {
	if _, err := os.Stat(sockets[0]); err != nil {
		return // a system that does not tell
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if !ofAnother(withPeer(t.Context(), server)) {
		t.Error("it may be anybody's, and is let in")
	}
}

// TestOwnConnection asks the system itself.
func TestOwnConnection(t *testing.T) {
	if _, err := os.Stat(sockets[0]); err != nil {
		return // a system that does not tell
	}
	var whose any
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		whose = r.Context().Value(peer{})
	}))
	server.Config.ConnContext = withPeer
	server.Start()
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // it is empty
	server.Close()
	if diff := cmp.Diff(any(os.Getuid()), whose); diff != "" {
		t.Error(diff)
	}
}
