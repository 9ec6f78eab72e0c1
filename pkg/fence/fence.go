package fence

import (
	"errors"
	"net/http"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
)

// ErrNotLeading is the error for a request that was not sent: whatever it was to write is not written.
var ErrNotLeading = errors.New("this process does not lead at the moment")

// Around returns a configuration whose clients change something only while leads says that this process does. They may
// always read.
func Around(config *rest.Config, leads func() bool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fence{next, leads} })
	return config
}

type fence struct {
	next  http.RoundTripper
	leads func() bool
}

// RoundTrip asks when the request is sent, not when it was made: it may have waited for its turn.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if reads(r.Method) || elects(r) || f.leads() {
		return f.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // as every RoundTripper has to
	}
	return nil, ErrNotLeading
}

// WrappedRoundTripper lets client-go find the transport.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }

func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// elects reports whether a request is part of an election, which those take part in who do not lead.
func elects(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/apis/"+coordinationv1.GroupName+"/")
}
