package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// web is two servers, one with TLS, that lead from one address to another.
func web(t *testing.T) (plain, secure string) {
	var to http.ServeMux
	a, b := httptest.NewServer(&to), httptest.NewTLSServer(&to)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	to.HandleFunc("/run.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, head) })
	to.HandleFunc("/large.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, endless{}, mostDownloaded+1) // whoever reads stops
	})
	to.Handle("/up", http.RedirectHandler(b.URL+"/run.yaml", http.StatusFound))
	to.Handle("/down", http.RedirectHandler(a.URL+"/run.yaml", http.StatusFound))
	to.Handle("/round", http.RedirectHandler("/round", http.StatusFound))
	was := downloads.Transport
	downloads.Transport = b.Client().Transport
	t.Cleanup(func() { downloads.Transport = was })
	return a.URL, b.URL
}

// endless is spaces without an end.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = ' '
	}
	return len(into), nil
}

func TestFilesOfTheWeb(t *testing.T) {
	plain, secure := web(t)
	for address, want := range map[string]string{
		plain + "/run.yaml":   "",
		secure + "/run.yaml":  "",
		plain + "/up":         "",
		secure + "/down":      "which is not protected by TLS",
		plain + "/round":      "it leads to more than 10 other addresses",
		plain + "/none":       "the server answers 404 Not Found",
		plain + "/large.yaml": "it is larger than 16 MiB",
	} {
		entries, err := ReadEntries(t.Context(), []string{address}, false, nil)
		switch {
		case want == "" && (err != nil || len(entries) != 1 || entries[0].Object.GetName() != "x"):
			t.Errorf("%s: %v, %v", address, entries, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "cannot read "+address)):
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

// Who interrupts does not wait for a server, nor for the end of what nobody types.
func TestReadingIsInterrupted(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	typed, types := io.Pipe()
	t.Cleanup(func() { _ = types.Close() })
	ctx, interrupt := context.WithCancel(t.Context())
	read := make(chan error, 2)
	go func() {
		_, err := ReadDocuments(ctx, server.URL, nil)
		read <- err
	}()
	go func() {
		_, err := ReadDocuments(ctx, Stdin, typed)
		read <- err
	}()
	<-asked
	interrupt()
	for range 2 {
		if err := <-read; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
