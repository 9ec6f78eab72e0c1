package cli

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/published"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// town is the sample fleet in memory, behind an API server that people work with: what they write there happens in the
// cluster, and what the scheduler does there is what they read.
type town struct {
	*sim.Cluster
	t      *testing.T
	server *clitest.Server

	busy     sync.Mutex
	pushed   map[string]client.Object // what the API server has of the cluster, by kind, namespace and name
	versions map[string]string        // as which versions
}

// newTown is the sample fleet with the sample Budgets.
func newTown(t *testing.T) *town {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, pushed: map[string]client.Object{}, versions: map[string]string{},
		Cluster: sim.New(sim.Options{Args: args, Rules: lifecycle.RulesOf(args), Begin: clitest.Noon, Reserves: true,
			Witness: sim.Witness{Violated: func(format string, args ...any) { t.Errorf(format, args...) }}})}
	for _, document := range samples(t, "fleet.yaml") {
		node := &corev1.Node{}
		read(t, document, node)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		w.SetNode(node)
	}
	for _, document := range samples(t, "budgets.yaml") {
		budget := &rqv1.Budget{}
		read(t, document, budget)
		budget.Generation = 1
		w.SetBudget(budget)
	}
	w.server = clitest.NewServer(t)
	w.server.Before = w.before
	w.server.Stream = stream
	return w
}

func samples(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// stream has each pod print the same, and no command run beside it: kwok's nodes have no kubelet that could.
func stream(out http.ResponseWriter, _ *http.Request, pod, stream string) {
	if stream == "log" {
		fmt.Fprintf(out, "step 100 loss 2.31\nstep 200 loss 2.17 of %s\n", pod)
		return
	}
	status := apierrors.NewInternalError(fmt.Errorf("error dialing backend: dial tcp: lookup d1: no such host")).Status()
	http.Error(out, status.Message, http.StatusInternalServerError)
}

// before has the scheduler see what somebody has written when they ask how it is.
func (w *town) before(request string) error {
	if strings.HasPrefix(request, "get runs/") {
		w.settle()
	}
	return nil
}

// settle has all that somebody has written happen, and be seen.
func (w *town) settle() {
	w.busy.Lock()
	defer w.busy.Unlock()
	if w.pull() {
		w.works()
		for i := 0; i < 10 && slices.ContainsFunc(slices.Collect(maps.Values(w.Runs)), unforeseen); i++ {
			w.Book.WorkOutNext(w.Now.Add(time.Duration(i)*time.Second), 0)
			w.works()
		}
	}
	w.push()
}

func (w *town) works() {
	if _, err := w.Work(); err != nil {
		w.t.Error(err)
	}
}

// unforeseen reports whether a suspended Run has not been told when it would start.
func unforeseen(run *rqv1.Run) bool { return run.Spec.Suspend && run.Status.Forecast == nil }

// push stores at the API server what has changed in the cluster.
func (w *town) push() {
	here := map[string]bool{}
	set := func(kind string, object client.Object) {
		key := kind + " " + object.GetNamespace() + "/" + object.GetName()
		here[key] = true
		if w.pushed[key] != object {
			w.server.Set(asKubelet(object))
			w.pushed[key], w.versions[key] = object, w.server.Get(object, "metadata", "resourceVersion")
		}
	}
	for _, node := range w.Nodes {
		set("Node", node)
	}
	for _, lease := range w.Leases {
		set("Lease", lease)
	}
	for _, reservation := range w.Reservations {
		set("Reservation", reservation)
	}
	for _, pod := range w.Pods {
		set("Pod", pod)
	}
	for _, run := range w.Runs { // last, as the status of a Run is written when all else has been
		set("Run", run)
	}
	for key, object := range w.pushed {
		if !here[key] {
			w.server.Delete(object)
			delete(w.pushed, key)
		}
	}
	w.report()
}

// asKubelet is an object with what a kubelet says of the containers of a pod that runs.
func asKubelet(object client.Object) client.Object {
	pod, isPod := object.(*corev1.Pod)
	if !isPod || pod.Spec.NodeName == "" || len(pod.Status.ContainerStatuses) > 0 {
		return object
	}
	pod = pod.DeepCopy()
	for i := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: pod.Spec.Containers[i].Name}
		if pod.Status.Phase == corev1.PodRunning {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}
		} else {
			status.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: pod.CreationTimestamp}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	return pod
}

// report stores what the scheduler tells of Budgets and of the fleet.
func (w *town) report() {
	for _, budget := range w.Budgets {
		if report, known := w.Book.Budgets.BudgetReport(budget, w.Now); known {
			next := budget.DeepCopy()
			next.Status = report.Status
			w.server.Set(next)
		}
	}
	data, err := published.Data(w.Args, w.Book.FleetSummary())
	if err != nil {
		w.t.Error(err)
	}
	w.server.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "jobtree-system", Name: published.ConfigMap},
		Data: data})
}

// pull has happen in the cluster what somebody has written to the API server, and reports whether there was anything.
func (w *town) pull() bool {
	changed := false
	there := map[string]bool{}
	for _, kind := range []string{"Run", "Node"} {
		for _, object := range w.server.Written(kind) {
			key := kind + " " + object.GetNamespace() + "/" + object.GetName()
			there[key] = true
			if w.versions[key] == object.GetResourceVersion() {
				continue
			}
			changed = true
			w.versions[key] = object.GetResourceVersion()
			w.written(kind, object)
		}
	}
	for key := range w.pushed {
		if name, isRun := strings.CutPrefix(key, "Run "+sim.Namespace+"/"); isRun && !there[key] {
			changed = true
			delete(w.pushed, key)
			w.DeleteRun(name)
		}
	}
	return changed
}

// written has an object of the cluster be as somebody has written it.
func (w *town) written(kind string, object *unstructured.Unstructured) {
	if kind == "Node" {
		node := &corev1.Node{}
		w.as(object, node)
		w.SetNode(node)
		return
	}
	run := &rqv1.Run{}
	w.as(object, run)
	if was := w.Runs[run.Name]; was != nil {
		run.Status, run.Generation = was.Status, was.Generation+1
		w.SetRun(run)
		return
	}
	run.Generation, run.CreationTimestamp = 1, metav1.NewTime(w.Now.Truncate(time.Second))
	run.Status = rqv1.RunStatus{Phase: rqv1.RunPending, Message: lifecycle.Waiting}
	w.SetRun(run)
}

func (w *town) as(object *unstructured.Unstructured, into any) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		w.t.Error(err)
	}
}
