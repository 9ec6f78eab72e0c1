package integration

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	trainPy  = "../../manifests/samples/failure/train.py"
	failures = "../../docs/failures.md"
)

// program is the documented program as ranks of a Run run it, as far as that needs neither GPUs nor PyTorch: processes
// of this machine with the environment of the ranks' pods, a shared directory for checkpoints, and a token of the Run's
// service account.
type program struct {
	*site
	python, checkpoints, token string
}

// documented returns the first fenced block of docs/failures.md that holds a text.
func documented(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile(failures)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(page), "```") {
		if i%2 == 1 && strings.Contains(block, text) {
			_, block, _ = strings.Cut(block, "\n")
			return block
		}
	}
	t.Fatalf("%s has no block that holds %q", failures, text)
	return ""
}

// newProgram has the service account of the Run trainer have the rights that are documented, and no others.
func newProgram(t *testing.T, s *site) *program {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("the sample program needs Python: apt-get install -y python3")
	}
	p := &program{site: s, python: python, checkpoints: t.TempDir(), token: t.TempDir()}
	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict([]byte(documented(t, "kind: Role")), role); err != nil {
		t.Fatal(err)
	}
	role.Namespace = s.namespace
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "trainer"}}
	s.create(account)
	s.create(role)
	s.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account.Name}}})
	request, err := s.kube.CoreV1().ServiceAccounts(s.namespace).CreateToken(t.Context(), account.Name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"token": []byte(request.Status.Token), "namespace": []byte(s.namespace),
		"ca.crt": s.AdminConfig().CAData} {
		if err := os.WriteFile(filepath.Join(p.token, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// process is one rank's.
type process struct {
	*exec.Cmd
	mu    sync.Mutex
	said  bytes.Buffer
	ended chan error
}

// Write keeps what the process says.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(text)
}

func (p *process) says() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// play starts the process of a rank, as the kubelet of its pod's node would.
func (p *program) play(rank string) *process {
	p.t.Helper()
	var pod corev1.Pod
	eventually(p.t, rank+" is to run", func() error {
		if pod = p.podsOf("trainer")[rank]; pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			return fmt.Errorf("it is %s on %q", pod.Status.Phase, pod.Spec.NodeName)
		}
		return nil
	})
	server, err := url.Parse(p.AdminConfig().Host)
	if err != nil {
		p.t.Fatal(err)
	}
	modules, err := filepath.Abs("testdata/torch")
	if err != nil {
		p.t.Fatal(err)
	}
	out := &process{Cmd: exec.Command(p.python, trainPy, p.checkpoints), ended: make(chan error, 1)}
	out.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "PYTHONPATH=" + modules,
		"PYTHONDONTWRITEBYTECODE=1", "SAVE_SECONDS=1", "TOKEN_DIR=" + p.token,
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}
	for _, v := range pod.Spec.Containers[0].Env {
		value := v.Value
		if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil {
			key := strings.TrimSuffix(strings.TrimPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.annotations['"), "']")
			value = pod.Annotations[key]
		}
		out.Env = append(out.Env, v.Name+"="+value)
	}
	out.Stdout, out.Stderr = out, out
	if err := out.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { out.ended <- out.Wait() }()
	p.t.Cleanup(func() {
		_ = out.Process.Kill()
		p.t.Logf("%s, epoch %s: %s", rank, pod.Labels[rqv1.LabelEpoch], out.says())
	})
	return out
}

// begins waits until a process has found out who it is, and from where it goes on.
func (p *program) begins(rank *process, words ...string) {
	p.t.Helper()
	eventually(p.t, "the program is to begin", func() error {
		for _, word := range words {
			if !strings.Contains(rank.says(), word) {
				return fmt.Errorf("it does not say %q: %q", word, rank.says())
			}
		}
		return nil
	})
}

// savedAfter waits until the program has said that it has saved after an instant, and returns when.
func (p *program) savedAfter(after time.Time) time.Time {
	p.t.Helper()
	var at time.Time
	eventually(p.t, "the program is to say that it has saved", func() error {
		run, err := p.get("trainer")
		if err != nil {
			return err
		}
		if at, err = time.Parse(time.RFC3339, run.Annotations[rqv1.AnnotationSavedAt]); err != nil {
			return err
		}
		if !at.After(after) {
			return fmt.Errorf("it was at %s", at)
		}
		return nil
	})
	return at
}

// TestTheSampleProgram runs the program that the documentation shows, against a Run that loses a rank and one that is
// told to go.
func TestTheSampleProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	p := newProgram(t, s)
	s.submit("trainer", 16, inPods(8), checkpoint(time.Hour), annotated("pod-delete.stage.kwok.x-k8s.io/delay", "20s"),
		func(r *rqv1.Run) {
			grace := int64(300)
			template(r).Spec.TerminationGracePeriodSeconds = &grace
			template(r).Spec.ServiceAccountName = "trainer"
		})
	s.await("trainer", rqv1.RunRunning, "bound 16 GPUs")
	first, second := p.play("trainer-0"), p.play("trainer-1")
	p.begins(first, "rank 0 of 2 at trainer-0.trainer, epoch 0, restart 0 from step 0")
	p.begins(second, "rank 1 of 2 at trainer-0.trainer, epoch 0, restart 0 from step 0")
	at := p.savedAfter(time.Now().Add(time.Second))

	// The machine takes the program of rank 1, and the other finds out.
	for _, rank := range []*process{first, second} {
		if err := rank.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	at = p.savedAfter(at.Add(-time.Second)) // the last that it said
	s.works(3 * time.Second)
	s.ends("trainer-1", exits(137, "killed"))
	s.restarted("trainer", "restart 1 of 3")
	for _, lease := range s.leasesOf("trainer") {
		if !lease.Status.Closed {
			continue
		}
		lost, since := lease.Status.Lost, lease.Status.Ended.Sub(at)
		if lost == nil || lease.Status.Cause != rqv1.CauseProgram || lost.GPUSeconds != 8*int64(since/time.Second) ||
			lost.OthersGPUSeconds != lost.GPUSeconds {
			t.Errorf("the Lease tells of %+v lost by %s, %s after the program saved", lost, lease.Status.Cause, since)
		}
	}
	if out := s.runs("explain trainer -n " + s.namespace); !strings.Contains(out, "Work lost, because it was not saved") {
		t.Errorf("kubectl runs explain tells of no lost work:\n%s", out)
	}
	again, new := p.play("trainer-0"), p.play("trainer-1")
	p.begins(new, "rank 1 of 2 at trainer-0.trainer, epoch 1, restart 1 from step ")
	p.begins(again, "rank 0 of 2", "epoch 0", "from step ")
	if strings.Contains(new.says(), "from step 0\n") || strings.Contains(again.says(), "from step 0\n") {
		t.Errorf("they begin anew: %s%s", new.says(), again.says())
	}
	at = p.savedAfter(at)

	p.forbidden()

	// Rank 0 is told to go, with five minutes to do so: it has saved, and its GPUs are free at once.
	pod := s.podsOf("trainer")["trainer-0"]
	began := time.Now()
	s.delete(&pod)
	if err := again.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-again.ended; err != nil {
		t.Errorf("the program ends: %v: %s", err, again.says())
	}
	eventually(t, "the pod is to have no more time", func() error {
		is := &corev1.Pod{}
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(&pod), is); err != nil {
			return client.IgnoreNotFound(err)
		}
		if given := is.DeletionGracePeriodSeconds; is.UID == pod.UID && (given == nil || *given > 1) {
			return fmt.Errorf("it has %v", given)
		}
		return nil
	})
	if run, err := s.get("trainer"); err != nil || run.Annotations[rqv1.AnnotationTakeMe] != "true" ||
		p.savedAfter(at.Add(-time.Second)).Before(began.Truncate(time.Second)) {
		t.Errorf("it says %v (%v)", run.Annotations, err)
	}
}

// forbidden tries what the documented right does not allow.
func (p *program) forbidden() {
	p.t.Helper()
	token, err := os.ReadFile(filepath.Join(p.token, "token"))
	if err != nil {
		p.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(p.AdminConfig())
	config.BearerToken = string(token)
	as, err := client.New(config, client.Options{Scheme: p.api.Scheme()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.submit("neighbour", 8, inPods(8))
	run, neighbour := p.run("trainer", 16), p.run("neighbour", 8)
	pod := p.podsOf("trainer")["trainer-1"]
	lease := p.leasesOf("trainer")[0]
	ctx, says := p.t.Context(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	for what, try := range map[string]func() error{
		"read its Run":           func() error { return as.Get(ctx, client.ObjectKeyFromObject(run), &rqv1.Run{}) },
		"list Runs":              func() error { return as.List(ctx, &rqv1.RunList{}) },
		"patch another Run":      func() error { return as.Patch(ctx, neighbour, says) },
		"delete its Run":         func() error { return as.Delete(ctx, run) },
		"patch its Run's status": func() error { return as.Status().Patch(ctx, run, says) },
		"patch a pod":            func() error { return as.Patch(ctx, pod.DeepCopy(), says) },
		"read a pod":             func() error { return as.Get(ctx, client.ObjectKeyFromObject(&pod), &corev1.Pod{}) },
		"patch a GPU lease":      func() error { return as.Patch(ctx, &lease, says) },
		"submit a Run":           func() error { return as.Create(ctx, p.run("third", 8)) },
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			p.t.Errorf("the program may %s: %v", what, err)
		}
	}
}

// TestTheSampleProgramIsDocumented compares the program of the documentation with the sample.
func TestTheSampleProgramIsDocumented(t *testing.T) {
	text, err := os.ReadFile(trainPy)
	if err != nil {
		t.Fatal(err)
	}
	if err := differs(string(text), documented(t, "import torch")); err != nil {
		t.Errorf("docs/failures.md shows another program than manifests/samples/failure/train.py: %v", err)
	}
}
