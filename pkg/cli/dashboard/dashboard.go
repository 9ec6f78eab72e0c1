// Package dashboard is "kubectl runs dashboard": a web page about the fleet, served on this machine alone, that shows
// what whoever starts it may read.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// dashboard is one "kubectl runs dashboard".
type dashboard struct {
	*session.Session
	port       int
	noBrowser  bool
	verifyPage bool
}

// Command returns "kubectl runs dashboard".
func Command(s *session.Session) *cobra.Command {
	d := &dashboard{Session: s}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Show the fleet, time, money, waiting Runs and the lottery in a web page",
		Long: `Serve a web page on 127.0.0.1 and open it in the browser. It reads the cluster with your own credentials and
shows what you may read; nothing is installed in the cluster, and nothing can be changed from the page. It ends with
Ctrl-C.

  Fleet     every GPU: who holds it, spares, what is lost or cordoned, and which Reservation intends to use it
  Time      who held GPUs, who will, maintenance, and the windows of envelopes
  Money     what each envelope pays for, and when its GPU-hours run out
  Waiting   when each Run starts, what it lacks, and which Runs may be cut for it
  Lottery   the record of each draw, computed again in the browser

The printed address can be opened once. Only programs on this machine can reach the page (on Linux, only your own), and
only the browser that opened the address can read it.`,
		Example: `  # On a machine without a browser: print the address, and forward the port with ssh -L 8001:127.0.0.1:8001
  kubectl runs dashboard --no-browser --port 8001

  # One file that checks lottery records offline, for people who do not want to trust this cluster's tools
  kubectl runs dashboard --verify-page > verify.html`,
		Args: cobra.NoArgs,
		RunE: s.RunE(d.run),
	}
	cmd.Flags().IntVar(&d.port, "port", 0, "port of 127.0.0.1 to serve on; 0 takes one that is free")
	cmd.Flags().BoolVar(&d.noBrowser, "no-browser", false, "print the address, and open no browser")
	cmd.Flags().BoolVar(&d.verifyPage, "verify-page", false,
		"write the page that checks lottery records to standard output, as one file, and end")
	return cmd
}

func (d *dashboard) run(ctx context.Context, _ []string) error {
	if d.verifyPage {
		_, err := d.Out.Write(VerifyPage())
		return err
	}
	listener, err := listen(d.port)
	if err != nil {
		return err
	}
	defer listener.Close()
	c, namespace, _, err := d.Connect()
	if err != nil {
		return err
	}
	args, guessed, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		return err
	}
	log.SetLogger(silent)
	watched, err := d.watch(ctx, c)
	if err != nil {
		return err
	}
	if guessed != "" {
		watched.unread = append(watched.unread, guessed)
	}
	pages := newFrames(watched, args, d.Now)
	go pages.run(ctx)
	guard, address, err := newGuard(listener.Addr().String(),
		&site{frames: pages, namespace: namespace, patience: eventsUnread})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "%s\n", address)
	fmt.Fprintln(d.ErrOut, "This address can be opened once. Press Ctrl-C to end the dashboard.")
	if !d.noBrowser {
		go func() { // some desktops have it take as long as the browser runs
			if open(address) != nil {
				fmt.Fprintln(d.ErrOut, "No browser could be opened: open the address yourself.")
			}
		}()
	}
	return serve(ctx, listener, guard)
}

// listen takes a port of this machine's loopback; 0 is one that is free.
func listen(port int) (net.Listener, error) {
	if port < 0 || port > math.MaxUint16 {
		return nil, session.Fail(session.ExitError, "--port %d is no port: choose one from 1024 to %d, or 0 for one that "+
			"is free", port, math.MaxUint16)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, session.Fail(session.ExitError, "port %d of 127.0.0.1 is used by another program, perhaps another "+
			"dashboard: end that, choose another port with --port, or leave --port out to take one that is free", port)
	case errors.Is(err, syscall.EACCES):
		return nil, session.Fail(session.ExitError, "you may not serve on port %d: choose one from 1024 to %d with "+
			"--port, or leave --port out to take one that is free", port, math.MaxUint16)
	case err != nil:
		return nil, session.Fail(session.ExitError, "%v; choose another port with --port", err)
	}
	return listener, nil
}

// idle is how long a connection is kept on which nothing is asked for.
const idle = 2 * time.Minute

// serve answers requests until the context ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idle,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: withPeer}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(server.Close(), ctx.Err())
	}
}
