package dashboard

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// TestAddressIsAnsweredWhileItIsOpened has the desktop open the address for as long as the browser runs, as some do.
func TestAddressIsAnsweredWhileItIsOpened(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ends, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ends.Close() }) // whoever reads it has been told
	script := []byte("#!/bin/sh\nread -r line < " + gate + "\n")
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), script, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	server := clitest.NewServer(t, nodeOf("a"))
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer, flags.Namespace = &server.URL, clitest.Ptr("rai")
	printed, out := io.Pipe()
	d := &dashboard{Session: &session.Session{Flags: flags, Now: time.Now,
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: io.Discard}}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx, nil) }()
	address, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(strings.TrimSpace(address))
	if err != nil {
		t.Errorf("not served while a browser is being opened: %v", err)
	} else if _ = answer.Body.Close(); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("%s", answer.Status)
	}
	if _, err := ends.WriteString("\n"); err != nil {
		t.Error(err)
	}
	cancel()
	<-ended
}

// TestNoBrowserWithoutADesktop: the text browser of a login node would use up the address.
func TestNoBrowserWithoutADesktop(t *testing.T) {
	for _, name := range desktops {
		t.Setenv(name, "")
	}
	if err := open("http://127.0.0.1:1"); err == nil {
		t.Error("a browser has been opened")
	}
}
