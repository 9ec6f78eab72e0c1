package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// watched is what a `kubectl runs watch` has written so far, while it goes on.
type watched struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
}

// watch follows the Runs of the site from now on, until the test ends.
func (s *site) watch(flags string) *watched {
	s.t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		s.t.Fatal(err)
	}
	command := exec.Command(filepath.Join(controlplane.BinDir(root), "kubectl-runs"),
		strings.Fields("watch -n "+s.namespace+" --kubeconfig "+s.Kubeconfig+" "+flags)...)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	w, ended := &watched{t: s.t}, make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for lines.Buffer(nil, 1<<20); lines.Scan(); {
			w.mu.Lock()
			w.lines = append(w.lines, lines.Text())
			w.mu.Unlock()
		}
	}()
	s.t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		_ = command.Wait() // it was killed
	})
	return w
}

func (w *watched) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

// await waits for lines that hold these texts, one after the other.
func (w *watched) await(texts ...string) {
	w.t.Helper()
	eventually(w.t, "what the watch tells", func() error {
		missing := texts
		lines := w.all()
		for _, line := range lines {
			if len(missing) > 0 && strings.Contains(line, missing[0]) {
				missing = missing[1:]
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("no line says, in its turn, %q:\n%s", missing[0], strings.Join(lines, "\n"))
		}
		return nil
	})
}

// TestWatchTellsWidthAndLeases follows a Run with spares that grows and shrinks, as text and as data.
func TestWatchTellsWidthAndLeases(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 8, 100)
	s.submit("vast", 1000) // which waits for ever: the watches have begun once they show it
	text, data := s.watch(""), s.watch("-o json")
	text.await("vast")
	data.await("vast")
	s.submit("train", 16, inGroups(8), withSpares(8), malleable(16, 32, 8))
	text.await(" spare GPU lease", "bound 16 GPUs")
	text.await("bound 16 GPUs", "[Grow to 24]", "a GPU lease (Grow): 8 GPUs on ",
		"Running    32/32 GPUs   [leases: 4 active, 4 spare]  grew to 32 GPUs")
	s.settled()
	if list := s.runs("list -n " + s.namespace); !strings.Contains(strings.Join(strings.Fields(list), " "),
		" 32/32 32/32 Running ") {
		t.Errorf("the list does not say how wide the Run is and what stands by:\n%s", list)
	}
	s.runs("shrink train --to 16 -n " + s.namespace)
	text.await("grew to 32 GPUs", "[Shrink to 16]",
		"Running    16/16 GPUs   [leases: 2 active, 2 spare]  shrunk to 16 GPUs")
	text.await("grew to 32 GPUs", "(Shrink): ")
	text.await("grew to 32 GPUs", "closed: Shrink")
	s.settled()
	story := s.runs("explain train -n " + s.namespace)
	for _, want := range []string{"  width:   16/16 GPUs\n", "  spares:  16/16 GPUs stand by\n",
		"  opened a spare GPU lease (Grow): 8 GPUs on ",
		"  opened a GPU lease (Grow): 8 GPUs on ", " (Shrink): ", " closed: Shrink\n"} {
		if !strings.Contains(story, want) {
			t.Errorf("explain does not say %q:\n%s", want, story)
		}
	}
	eventually(t, "the data to say the same", func() error { return lastSighting(data.all()) })
}

// lastSighting is an error unless each line is a Run, and the last one has two active and two spare GPU leases.
func lastSighting(lines []string) error {
	var seen struct {
		rqv1.Run
		Watch struct{ Leases map[string]int }
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &seen); err != nil || seen.Kind != "Run" {
			return fmt.Errorf("no Run: %v: %s", err, line)
		}
	}
	if seen.Name != "train" {
		return fmt.Errorf("the last line is about Run %s", seen.Name)
	}
	if diff := cmp.Diff(map[string]int{"active": 2, "spare": 2, "borrowed": 0}, seen.Watch.Leases); diff != "" {
		return fmt.Errorf("open GPU leases: %s", diff)
	}
	return nil
}
