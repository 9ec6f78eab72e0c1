package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asks is a request to a guard.
type asks struct {
	method, host, path string
	header             map[string]string
	cookie             *http.Cookie
}

func (a asks) of(g *guard) *http.Response {
	r := httptest.NewRequest(a.method, "http://127.0.0.1:8001"+a.path, nil)
	if a.host != "" {
		r.Host = a.host
	}
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	if a.cookie != nil {
		r.AddCookie(a.cookie)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Result()
}

// browsed is a guard whose address a browser has opened.
type browsed struct {
	*guard
	opens  asks         // the address
	cookie *http.Cookie // what the browser has been given
	key    string
}

// browse opens the address that a new guard has printed.
func browse(t *testing.T) browsed {
	t.Helper()
	within := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("secret")) })
	g, address, err := newGuard("127.0.0.1:8001", within)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := url.Parse(address)
	if err != nil || printed.Host != "127.0.0.1:8001" {
		t.Fatalf("%v: %s", err, address)
	}
	opens := asks{method: "GET", path: "/?" + printed.RawQuery}
	code := func(a asks) int { return a.of(g).StatusCode }
	if got := code(asks{method: "GET", path: "/?token=0"}); got != http.StatusUnauthorized {
		t.Errorf("a token that is guessed: %d", got)
	}
	if got := code(asks{method: "HEAD", path: opens.path}); got != http.StatusUnauthorized {
		t.Errorf("a program that looks whether the address is there: %d", got)
	}
	opened := opens.of(g)
	if diff := cmp.Diff(http.StatusSeeOther, opened.StatusCode); diff != "" || len(opened.Cookies()) != 1 {
		t.Fatalf("%s %v", diff, opened.Cookies())
	}
	cookie := opened.Cookies()[0]
	key, ok := strings.CutPrefix(opened.Header.Get("Location"), "/#key=")
	if !ok || len(key) != 64 {
		t.Fatalf("no key: %s", opened.Header.Get("Location"))
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Domain != "" {
		t.Errorf("the cookie goes to others: %v", cookie)
	}
	return browsed{g, opens, cookie, key}
}

// TestOneBrowserIsLetIn opens the printed address, and then tries what other programs and other sites can try.
func TestOneBrowserIsLetIn(t *testing.T) {
	b := browse(t)
	g, opens, cookie, key := b.guard, b.opens, b.cookie, b.key
	if again := (asks{method: "GET", path: opens.path, cookie: cookie}).of(g); again.Header.Get("Location") != "/" {
		t.Errorf("whoever has the cookie is told the key: %s", again.Header.Get("Location"))
	}
	wrong := &http.Cookie{Name: cookie.Name, Value: "0"}
	for name, c := range map[string]struct {
		asks asks
		want int
	}{
		"the same browser": {asks{method: "GET", path: "/", cookie: cookie}, http.StatusOK},
		"its page":         {asks{method: "GET", path: "/events?key=" + key, cookie: cookie}, http.StatusOK},
		"its page's question": {asks{method: "GET", path: "/api/time?by=owner&key=" + key, cookie: cookie},
			http.StatusOK},
		"a cookie that another port was sent": {asks{method: "GET", path: "/events", cookie: cookie}, 401},
		"that, and a key that is guessed":     {asks{method: "GET", path: "/api/money?key=0", cookie: cookie}, 401},
		"the key without the cookie":          {asks{method: "GET", path: "/api/money?key=" + key}, 401},
		"as localhost":                        {asks{method: "GET", path: "/", host: "localhost:8001", cookie: cookie}, 200},
		"the address again":                   {asks{method: "GET", path: opens.path, cookie: cookie}, http.StatusSeeOther},
		"the address elsewhere":               {opens, http.StatusUnauthorized},
		"no cookie":                           {asks{method: "GET", path: "/"}, http.StatusUnauthorized},
		"another cookie":                      {asks{method: "GET", path: "/", cookie: wrong}, http.StatusUnauthorized},
		"a name that leads here":              {asks{method: "GET", path: "/", host: "evil.test:8001", cookie: cookie}, 421},
		"the right name, another port":        {asks{method: "GET", path: "/", host: "127.0.0.1", cookie: cookie}, 421},
		"a write":                             {asks{method: "POST", path: "/", cookie: cookie}, http.StatusMethodNotAllowed},
		"another site's script": {asks{method: "GET", path: "/", cookie: cookie,
			header: map[string]string{"Origin": "https://evil.test"}}, http.StatusForbidden},
		"another port's script": {asks{method: "GET", path: "/", cookie: cookie,
			header: map[string]string{"Sec-Fetch-Site": "same-site"}}, http.StatusForbidden},
		"another site's link": {asks{method: "GET", path: opens.path,
			header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, http.StatusForbidden},
		"its own script": {asks{method: "GET", path: "/", cookie: cookie,
			header: map[string]string{"Origin": "http://127.0.0.1:8001", "Sec-Fetch-Site": "same-origin"}}, http.StatusOK},
	} {
		answered := c.asks.of(g)
		if answered.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, answered.StatusCode, c.want)
		}
		if diff := cmp.Diff(policy, answered.Header.Get("Content-Security-Policy")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if answered.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: others may read the answer", name)
		}
	}
}
