package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"sync"
)

// policy lets the page use what is served with it, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets one browser of this machine in, one of whoever has started the dashboard where that can be told. A page of
// another site cannot read what is served, not even under a name of its own that leads here (DNS rebinding): the Host
// has to be the one that was printed, requests that another site causes are refused, and who has not opened the printed
// address has no cookie. Browsers show a cookie to every port of a host, so a server of somebody else on this machine
// may come to know it. That opens the page's own files, which are no secret: for what is read of the cluster the page
// shows a key as well. The browser is told the key once, behind the # of an address, which no server is sent, and
// keeps it where only pages of this very port find it.
type guard struct {
	hosts  []string
	port   string
	within http.Handler
	cookie string // what the browser shows that has opened the address
	key    string // what the page shows that this browser has opened

	mu    sync.Mutex
	token string // what is in the address; empty once it has been used
}

// newGuard guards what is served at an address, HOST:PORT, and returns the address to open.
func newGuard(at string, within http.Handler) (g *guard, address string, err error) {
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, "", err
	}
	g = &guard{hosts: []string{"127.0.0.1:" + port, "localhost:" + port}, port: port, within: within, cookie: secret(),
		key: secret(), token: secret()}
	return g, "http://" + g.hosts[0] + "/?token=" + g.token, nil
}

// secret returns 32 random bytes in hexadecimal.
func secret() string {
	var b [32]byte
	rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// cookieName tells dashboards apart that run at the same time: cookies know no ports.
func (g *guard) cookieName() string { return "jobtree-dashboard-" + g.port }

// ServeHTTP answers requests of the browser that has opened the address, and refuses all others.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	switch {
	case ofAnother(r.Context()):
		header.Set("Connection", "close")
		http.Error(w, "this dashboard is another user's: start one of your own", http.StatusForbidden)
	case !slices.Contains(g.hosts, r.Host):
		http.Error(w, "this dashboard is served to 127.0.0.1 and localhost only", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "the dashboard only reads", http.StatusMethodNotAllowed)
	case foreign(r):
		http.Error(w, "Another site has asked for this, and may not read the dashboard. If you have followed a link to it, "+
			"copy the address into the browser instead.", http.StatusForbidden)
	case r.Method == http.MethodGet && r.URL.Query().Get("token") != "":
		g.admit(w, r)
	case !g.admitted(r):
		http.Error(w, "Open the address that \"kubectl runs dashboard\" has printed. It can be opened once: "+
			"start the command again for another browser.", http.StatusUnauthorized)
	case ofCluster(r.URL.Path) && !same(r.URL.Query().Get("key"), g.key):
		http.Error(w, "Open the address that \"kubectl runs dashboard\" has printed: this page lacks its key.",
			http.StatusUnauthorized)
	default:
		g.within.ServeHTTP(w, r)
	}
}

// foreign reports whether another site has caused a request.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// admitted reports whether a request comes from the browser that has opened the address.
func (g *guard) admitted(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookieName())
	return err == nil && same(cookie.Value, g.cookie)
}

// admit lets the browser in that shows the token first, and gives it the cookie and the key. Who shows the cookie may
// show the token again, and is given nothing.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) {
	switch {
	case g.spend(r.URL.Query().Get("token")):
		http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: g.cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/#key="+g.key, http.StatusSeeOther)
	case g.admitted(r):
		http.Redirect(w, r, "/", http.StatusSeeOther)
	default:
		http.Error(w, "This address has been opened before, or is that of another dashboard. Start \"kubectl runs "+
			"dashboard\" again.", http.StatusUnauthorized)
	}
}

// spend uses the token, if it is the right one and has not been used.
func (g *guard) spend(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || !same(token, g.token) {
		return false
	}
	g.token = ""
	return true
}

// same compares secrets in a time that tells nothing of them.
func same(shown, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(secret)) == 1
}
