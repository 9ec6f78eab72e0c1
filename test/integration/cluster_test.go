package integration

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// patience is the longest that a test waits for something: the machine may be busy with much else, and in hours of a
// soak it once is.
var patience = 90 * time.Second

// soak returns for how long a test goes on that JOBTREE_SOAK, a duration, may have take longer than usual.
func soak(usual time.Duration) time.Duration {
	if longer, err := time.ParseDuration(os.Getenv("JOBTREE_SOAK")); err == nil {
		return longer
	}
	return usual
}

// full returns how much of something a test does: less where nothing says for how long it is to soak, so that all tests
// together take minutes.
func full(all, usual int) int {
	if isSoak() {
		return all
	}
	return usual
}

// isSoak tells whether it does.
func isSoak() bool { return soak(0) > 0 }

// cluster is a control plane with kwok, the administrator's clients, and a watch over its ledger.
type cluster struct {
	*controlplane.ControlPlane
	kube   kubernetes.Interface
	api    client.WithWatch
	ledger *ledger
	mirror *mirror
	canary *canary
	// dir is its state directory.
	dir string
	// asNew are the objects that it had when it was new, if it is of the pool.
	asNew *controlplane.Contents
}

// live is the cluster that tests share that do not kill anything: one with a running scheduler. The first of them
// starts it. Each test has a namespace, a GPU type and an owner of its own there, so that they do not meet.
var live struct {
	sync.Once
	*cluster
	err error
}

// patientElection gives a leader that nobody wants to follow time to renew its lease, however busy the machine is: it
// ends when it could not.
var patientElection = map[string]any{"leaderElection": map[string]any{
	"leaseDuration": "2m", "renewDeadline": "110s", "retryPeriod": "2s",
}}

func liveCluster(t *testing.T) *cluster {
	t.Helper()
	live.Do(func() {
		var dir string
		if dir, live.err = os.MkdirTemp("", "jobtree-live-"); live.err == nil {
			live.cluster, live.err = openCluster(controlplane.Options{
				Dir: dir, Scheduler: true, Kwok: true, JobSet: true, LWS: true, Audit: true,
				Config: schedulerConfig(t, dir, patientElection, map[string]any{"gangDeadline": "30s"}),
			})
		}
		if live.err == nil {
			live.err = live.furnish()
		}
	})
	if live.err != nil {
		t.Fatalf("starting the shared cluster: %v", live.err)
	}
	return live.cluster
}

// ownCluster returns a cluster for one test alone, without a scheduler. Its schedulers' configuration is the installed
// one with changes merged into it, and arguments into the plugin's.
func ownCluster(t *testing.T, changes, arguments map[string]any) *cluster {
	t.Helper()
	return clusterOf(t, own, false, changes, arguments)
}

// clusterForMany returns such a cluster for all subtests of a test.
func clusterForMany(t *testing.T, changes, arguments map[string]any) *cluster {
	t.Helper()
	return clusterOf(t, ofMany, false, changes, arguments)
}

// jobSetCluster returns such a cluster with the controller of JobSets.
func jobSetCluster(t *testing.T, changes, arguments map[string]any) *cluster {
	t.Helper()
	return clusterOf(t, own, true, changes, arguments)
}

func clusterOf(t *testing.T, places chan struct{}, jobSets bool, changes, arguments map[string]any) *cluster {
	t.Helper()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	c, err := pooled(jobSets)
	if err != nil {
		t.Fatalf("starting a cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := c.KillSchedulers(); err != nil {
			t.Error(err)
		}
		if err := pool.Give(c, jobSets, t.Failed()); err != nil {
			t.Log(err)
		}
	})
	c.Configure(schedulerConfig(t, t.TempDir(), changes, arguments))
	return c
}

// schedulerConfig writes into dir the installed configuration with changes merged into it, and arguments into the
// plugin's. Unless they say otherwise it takes long until a silent node is lost.
func schedulerConfig(t *testing.T, dir string, changes, arguments map[string]any) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(manifests, "scheduler", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	merge(config, changes)
	profile := config["profiles"].([]any)[0].(map[string]any)
	args := profile["pluginConfig"].([]any)[0].(map[string]any)["args"].(map[string]any)
	merge(args, map[string]any{"nodeLossGrace": "2m"}) // a machine that is busy may keep kwok from renewing leases
	merge(args, arguments)
	if data, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// starting has a place for each control plane that may start at a time: it keeps a processor busy for seconds.
var starting = make(chan struct{}, 2)

func openCluster(o controlplane.Options) (*cluster, error) {
	starting <- struct{}{}
	plane, err := controlplane.Start(context.Background(), o)
	<-starting
	if err != nil {
		return nil, err
	}
	c := &cluster{ControlPlane: plane, dir: o.Dir}
	if c.kube, err = kubernetes.NewForConfig(plane.AdminConfig()); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rqv1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config := plane.AdminConfig()
	config.WarningHandler = rest.NoWarnings{} // there is no version of PodGroups of which none is given
	if c.api, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	c.ledger, c.canary = newLedger(), newCanary(c.kube)
	c.mirror, err = newMirror(c, c.ledger)
	return c, err
}

// ledger remembers what no later look at the API can show: every pod of a Run that was ever bound, every Lease as it
// was last seen, and those that changed when they may not.
type ledger struct {
	mutex sync.Mutex
	// bound are the pods, by namespace and UID.
	bound map[string]map[string]string
	// leases are by namespace and name: the name holds the pod's UID.
	leases map[string]map[string]*rqv1.Lease
	// reservations are by namespace and UID.
	reservations map[string]map[types.UID]*rqv1.Reservation
	wrong        []string
}

func newLedger() *ledger {
	return &ledger{bound: map[string]map[string]string{}, leases: map[string]map[string]*rqv1.Lease{},
		reservations: map[string]map[types.UID]*rqv1.Reservation{}}
}

// forget drops what is remembered of a namespace that is gone.
func (l *ledger) forget(namespace string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.bound, namespace)
	delete(l.leases, namespace)
	delete(l.reservations, namespace)
}

func (l *ledger) holds(lease *rqv1.Lease) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.leases[lease.Namespace] == nil {
		l.leases[lease.Namespace] = map[string]*rqv1.Lease{}
	}
	l.leases[lease.Namespace][lease.Name] = lease
}

func (l *ledger) changed(old, now *rqv1.Lease) {
	if old.UID != now.UID || equality.Semantic.DeepEqual(old.Spec, now.Spec) &&
		(!old.Status.Closed || equality.Semantic.DeepEqual(old.Status, now.Status)) {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.wrong = append(l.wrong, "I4: Lease "+now.Namespace+"/"+now.Name+" changed after the fact")
}

func (l *ledger) saw(pod *corev1.Pod) {
	if pod.Labels[rqv1.LabelRun] == "" || pod.Spec.NodeName == "" {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.bound[pod.Namespace] == nil {
		l.bound[pod.Namespace] = map[string]string{}
	}
	l.bound[pod.Namespace][string(pod.UID)] = pod.Name
}
