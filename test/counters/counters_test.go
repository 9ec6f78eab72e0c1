package counters

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestKilledProcessIsCounted kills a process that would last, and looks for what it covered.
func TestKilledProcessIsCounted(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "lasting")
	run(t, "go", "build", "-cover", "-covermode=atomic", "-o", program, "./testdata/lasting")
	counters := filepath.Join(dir, "counters")
	if err := os.Mkdir(counters, 0o755); err != nil {
		t.Fatal(err)
	}
	lasting := exec.Command(program)
	lasting.Env = append(os.Environ(), "GOCOVERDIR="+counters)
	if err := lasting.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	for found := 0; found == 0; {
		paths, err := filepath.Glob(filepath.Join(counters, "covcounters.*"))
		if found = len(paths); err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatal("nothing is written within a minute")
		}
	}
	if err := lasting.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = lasting.Wait()
	profile := filepath.Join(dir, "profile")
	run(t, "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+profile)
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`main\.go:19\.\S+ 1 1\n`, `main\.go:21\.\S+ 1 0\n`} {
		if !regexp.MustCompile(line).Match(text) {
			t.Errorf("no line is %s in\n%s", line, text)
		}
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
