package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/picture"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// patience is how long something may take to happen.
const patience = 20 * time.Second

// stage is where the demo is played: a control plane, and what tells of it.
type stage struct {
	c       *controlplane.ControlPlane
	bin     string
	out     io.Writer
	colours bool

	client  client.Client
	events  chan string // lines of `kubectl runs watch`
	close   func()      // ends that command, which would outlive its API server
	letters picture.Letters
	checks  int
	images  string // the directory for pictures; "" for none
}

// open connects to the control plane and begins to watch it.
func (s *stage) open(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rqv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if s.client, err = client.New(s.c.AdminConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return s.follow(ctx)
}

// follow begins to gather events.
func (s *stage) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	watch := exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl-runs"), "watch", "-A")
	watch.Env = append(os.Environ(), "KUBECONFIG="+s.c.Kubeconfig)
	watch.Stderr = os.Stderr
	watch.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // main stays on the thread that is meant
	lines, err := watch.StdoutPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		cancel()
		return err
	}
	s.events = make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(s.events)
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			select {
			case s.events <- scanner.Text():
			case <-ctx.Done():
			}
		}
		_ = watch.Wait() // how it ends is of no interest: it is killed, or the events that are missing tell
	}()
	s.close = func() { cancel(); <-ended }
	return nil
}

// title begins a part of the demo.
func (s *stage) title(text string) {
	if s.colours {
		text = "\033[1m" + text + "\033[0m"
	}
	fmt.Fprintf(s.out, "\n%s\n\n", text)
}

// kubectl shows a command, runs it and shows what it prints.
func (s *stage) kubectl(ctx context.Context, line string) error {
	_, err := s.ask(ctx, line)
	return err
}

// ask does likewise, and returns what the command prints.
func (s *stage) ask(ctx context.Context, line string) (string, error) {
	fmt.Fprintf(s.out, "  $ kubectl %s\n", line)
	stdout, stderr, err := s.c.Kubectl(ctx, strings.Fields(line)...)
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", line, err, stderr)
	}
	for text := range strings.Lines(stdout) {
		fmt.Fprintf(s.out, "  %s", text)
	}
	return stdout, nil
}

// await shows events until there has been a line with all the words of each of the wanted.
func (s *stage) await(ctx context.Context, wanted ...[]string) error {
	s.checks += len(wanted)
	timeout := time.After(patience)
	for len(wanted) > 0 {
		select {
		case line, ok := <-s.events:
			if !ok {
				return fmt.Errorf("`kubectl runs watch` has ended, before %q", wanted)
			}
			fmt.Fprintf(s.out, "  %s\n", line)
			wanted = slices.DeleteFunc(wanted, func(words []string) bool {
				return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
			})
		case <-timeout:
			return fmt.Errorf("expected within %v, but it did not happen: %q", patience, wanted)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// look reads the state of the world.
func (s *stage) look(ctx context.Context) (*world, error) {
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	runs, leases, budgets := &rqv1.RunList{}, &rqv1.LeaseList{}, &rqv1.BudgetList{}
	reservations := &rqv1.ReservationList{}
	for _, list := range []client.ObjectList{nodes, pods, runs, leases, budgets, reservations} {
		if err := s.client.List(ctx, list); err != nil {
			return nil, err
		}
	}
	return &world{nodes.Items, pods.Items, runs.Items, leases.Items, budgets.Items, reservations.Items}, nil
}

// picture shows the fleet, and checks that nothing contradicts itself.
func (s *stage) picture(ctx context.Context) (*world, error) {
	w, err := s.settled(ctx)
	if err != nil {
		return nil, err
	}
	for i := range w.leases {
		s.letters.Add(runOf(&w.leases[i]))
	}
	nodes, err := w.fleet()
	if err != nil {
		return nil, err
	}
	fmt.Fprint(s.out, picture.Text(nodes, picture.Style{Letters: &s.letters, Colours: s.colours}))
	return w, s.check("what the ledger, the pods and the budgets contradict each other in", nil, w.contradictions())
}

// settled reads the state of the world until nothing in it is on its way, or does not come to rest.
func (s *stage) settled(ctx context.Context) (*world, error) {
	const tries = 20
	for n := 1; ; n++ {
		w, err := s.look(ctx)
		if err != nil || n == tries || len(w.contradictions()) == 0 {
			return w, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// check compares what is with what should be.
func (s *stage) check(what string, want, got []string) error {
	s.checks++
	if slices.Equal(want, got) {
		return nil
	}
	return fmt.Errorf("%s: not as expected\nexpected: %s\n     got: %s", what, strings.Join(want, "\n          "),
		strings.Join(got, "\n          "))
}
