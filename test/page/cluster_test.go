package page

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root is the checkout.
const root = "../.."

// cluster is a local control plane with the sample fleet, where others are cut for a Run that waits after 30 seconds.
type cluster struct {
	t   testing.TB
	dir string
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, dir: t.TempDir()}
	t.Cleanup(func() {
		if out, err := c.controlplane("down"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	c.up()
	return c
}

// up starts what does not run of it.
func (c *cluster) up() {
	c.t.Helper()
	if out, err := c.controlplane("-config", "manifests/samples/scheduler/short-lead.yaml", "up"); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

func (c *cluster) controlplane(args ...string) ([]byte, error) {
	cmd := exec.Command("bin/controlplane", append([]string{"-dir", c.dir}, args...)...)
	cmd.Dir = root
	return cmd.CombinedOutput()
}

// pid is the number of one of its processes.
func (c *cluster) pid(process string) string {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.dir, "*", process+".pid"))
	more, err2 := filepath.Glob(filepath.Join(c.dir, process+".pid"))
	if found = append(found, more...); err != nil || err2 != nil || len(found) != 1 {
		c.t.Fatalf("%v: pidfiles of %s: %v", errors.Join(err, err2), process, found)
	}
	pid, err := os.ReadFile(found[0])
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(pid))
}

// kill ends one of its processes as a crash does.
func (c *cluster) kill(process string) {
	c.t.Helper()
	if out, err := exec.Command("kill", "-9", c.pid(process)).CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

func (c *cluster) env() []string {
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		c.t.Fatal(err)
	}
	return append(os.Environ(), "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"), "PATH="+bin+":"+os.Getenv("PATH"))
}

// kubectl runs a command that succeeds, and returns what it prints.
func (c *cluster) kubectl(args string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bin/kubectl", strings.Fields(args)...)
	cmd.Dir, cmd.Env = root, c.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("kubectl %s: %v: %s%s", args, err, out.String(), errs.String())
	}
	return out.String()
}

// dashboard begins a dashboard, which ends with the test, and returns the address to open.
func dashboard(t testing.TB, env []string, args ...string) string {
	t.Helper()
	address, _ := begin(t, env, args...)
	return address
}

// begin does likewise, and returns the process.
func begin(t testing.TB, env []string, args ...string) (string, *os.Process) {
	t.Helper()
	cmd := exec.Command("bin/kubectl-runs", append([]string{"dashboard", "--no-browser"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = root, env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGCONT)
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address is printed: %v", err)
	}
	return strings.TrimSpace(address), cmd.Process
}
