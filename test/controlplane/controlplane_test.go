package controlplane

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// pids are the contents of the pidfiles by process name.
func pids(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, p := range pidfiles(dir) {
		data, err := os.ReadFile(string(p))
		if err != nil {
			t.Fatal(err)
		}
		found[p.name()] = strings.TrimSpace(string(data))
	}
	return found
}

func TestUpDown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	o := Options{Dir: dir, Kwok: true, JobSet: true, LWS: true, Detached: true}
	t.Cleanup(func() { _, _ = Down(dir) })
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"etcd", "jobset-controller", "kube-apiserver", "kube-controller-manager", "kwok", "lws-controller"}
	if diff := cmp.Diff(all, Running(dir)); diff != "" {
		t.Error(diff)
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}}
	if _, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, note,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	before := pids(t, dir)
	if c, err = Start(ctx, o); err != nil {
		t.Fatalf("second up: %v", err)
	}
	if diff := cmp.Diff(before, pids(t, dir)); diff != "" {
		t.Errorf("second up: %s", diff)
	}

	for _, p := range []*Process{c.Etcd, c.APIServer, c.Kwok, c.JobSet, c.LWS} {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = Start(ctx, o); err != nil {
		t.Fatalf("up after a crash: %v", err)
	}
	if diff := cmp.Diff(all, Running(dir)); diff != "" {
		t.Errorf("up after a crash: %s", diff)
	}
	if _, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "note", metav1.GetOptions{}); err != nil {
		t.Errorf("what was written before the crash: %v", err)
	}

	if err := c.Etcd.Kill(); err != nil {
		t.Fatal(err)
	}
	killed, err := Down(dir)
	if err != nil {
		t.Fatalf("down in part: %v", err)
	}
	if diff := cmp.Diff(all[1:], killed); diff != "" {
		t.Error(diff)
	}
	for _, address := range []string{c.address, c.etcdAddress} {
		if connection, err := net.Dial("tcp", address); err == nil {
			_ = connection.Close()
			t.Errorf("somebody listens on %s after down", address)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if diff := cmp.Diff([]string{filepath.Join(dir, "lock"), filepath.Join(dir, "logs")}, left); err != nil || diff != "" {
		t.Errorf("left after down: %s, %v", diff, err)
	}
	if killed, err = Down(dir); err != nil || len(killed) > 0 {
		t.Errorf("down twice: %v, %v", killed, err)
	}
	if killed, err = Down(filepath.Join(dir, "never")); err != nil || len(killed) > 0 {
		t.Errorf("down without up: %v, %v", killed, err)
	}
}

func TestAPIServerComesBackWhereItWas(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	if err := c.APIServer.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("an API server that is dead answers")
	}
	if err := c.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.CoreV1().Nodes().Get(ctx, "played", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestUsersHaveTheRightsTheyWereGiven(t *testing.T) {
	c, ctx := testPlane(t), t.Context()
	tests := []struct {
		name       string
		kubeconfig func() (string, error)
		forbidden  bool
	}{
		{"nobody", func() (string, error) { return c.KubeconfigForUser("someone", "researchers") }, true},
		{"administrator", func() (string, error) { return c.KubeconfigForUser("someone:else", "system:masters") }, false},
		{"service account", func() (string, error) { return c.KubeconfigForServiceAccount(ctx, "default", "default") }, true},
		{"scheduler", func() (string, error) { return c.KubeconfigForServiceAccount(ctx, Namespace, SchedulerAccount) },
			false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path, err := test.kubeconfig()
			if err != nil {
				t.Fatal(err)
			}
			config, err := RESTConfig(path)
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if got := apierrors.IsForbidden(err); got != test.forbidden || (err != nil && !got) {
				t.Errorf("listing nodes: %v; want forbidden %v", err, test.forbidden)
			}
		})
	}
	if _, err := c.KubeconfigForServiceAccount(ctx, "default", "missing"); err == nil {
		t.Error("no error for a service account that does not exist")
	}
}

func TestMissingBinaryNamesTheTarget(t *testing.T) {
	_, err := Start(t.Context(), Options{Dir: t.TempDir(), BinDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "run `make tools`") {
		t.Errorf("error %v", err)
	}
}

func TestServerThatDoesNotComeUp(t *testing.T) {
	dir := t.TempDir()
	// A file where etcd wants its data.
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "etcd has died") || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("error %v", err)
	}
	if running := Running(dir); len(running) > 0 {
		t.Errorf("%v keep running", running)
	}
}
