package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// answers stands for an API server that answers every write of a status with an error, or takes it.
type answers struct {
	client.WithWatch
	status writes
}

type writes struct {
	client.SubResourceWriter
	err error
}

func (a *answers) Status() client.SubResourceWriter { return &a.status }

func (s *writes) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return s.err
}

// TestAStatusThatIsRefusedHoldsUpNoEnd has a rank fail, so that the others are to end once the status says so. They
// end as well when the API server takes the status for invalid, which is told, and not when it is merely not reached.
func TestAStatusThatIsRefusedHoldsUpNoEnd(t *testing.T) {
	kind := rqv1.GroupVersion.WithKind("Run").GroupKind()
	tooLong := field.TooLong(field.NewPath("status", "conditions").Index(0).Child("message"), "", 32768)
	for name, test := range map[string]struct {
		err   error
		goes  bool // the other rank is told to end
		told  bool
		fails bool
	}{
		"taken":   {goes: true},
		"invalid": {err: apierrors.NewInvalid(kind, "train", field.ErrorList{tooLong}), goes: true, told: true},
		"not reached": {err: apierrors.NewServerTimeout(rqv1.GroupVersion.WithResource("runs").GroupResource(), "update", 1),
			fails: true},
	} {
		pods := []*corev1.Pod{rankOf(0, corev1.PodFailed), rankOf(1, corev1.PodRunning)}
		kube := fake.NewClientset(pods[0], pods[1])
		recorder := events.NewFakeRecorder(10)
		c := reconciling(t, Options{Kube: kube, Client: &answers{status: writes{err: test.err}}, events: recorder})
		run := runAt("1")
		run.Status.Phase = rqv1.RunRunning
		run.Spec = rqv1.RunSpec{Owner: "o", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 16}}
		for _, node := range []string{"n0", "n1"} {
			c.book.SetNode(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"gpu.flavor": "H100", "region": "r",
					"cluster": "c", "fabric.domain": "d"}}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
					"nvidia.com/gpu": resource.MustParse("8")}}})
		}
		c.book.SetRun(run)
		for _, err := range []error{c.watches.runs.GetStore().Add(run), c.watches.pods.GetStore().Add(pods[0]),
			c.watches.pods.GetStore().Add(pods[1])} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.reconcile(t.Context(), train); (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
		pod, err := kube.CoreV1().Pods(train.Namespace).Get(t.Context(), "train-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, told := rank.GoesBy(pod); told != test.goes {
			t.Errorf("%s: rank 1 is told to end: %t, want %t", name, told, test.goes)
		}

		close(recorder.Events)
		told := false
		for event := range recorder.Events {
			told = told || strings.Contains(event, "StatusRefused")
		}
		if told != test.told {
			t.Errorf("%s: told that it is refused: %v, want %v", name, told, test.told)
		}
	}
}

// reconciling returns what reconciles Runs at noon, with a book that knows nothing yet.
func reconciling(t *testing.T, o Options) *reconciler {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Args, o.Book, o.Clock = args, book.New(args), clocktesting.NewFakeClock(noon)
	o.doubt, o.Shared = believing(o.Clock), informers.NewSharedInformerFactory(o.Kube, 0)
	return newReconciler(&o, newWatches(nil, o.Kube), func([]string) {})
}

// rankOf is a bound pod of train.
func rankOf(index int, phase corev1.PodPhase) *corev1.Pod {
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: train.Namespace, Name: fmt.Sprintf("train-%d", index),
		UID: types.UID(fmt.Sprint("pod", index)),
		Labels: map[string]string{rqv1.LabelRun: train.Name, rqv1.LabelRole: string(rqv1.RoleActive),
			rqv1.LabelIndex: fmt.Sprint(index), rqv1.LabelGroupIndex: "0"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: rqv1.GroupVersion.String(), Kind: "Run", Name: train.Name,
			UID: "run", Controller: &controller}}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("n", index)}, Status: corev1.PodStatus{Phase: phase}}
}

// TestAWidthThatIsToldFirstIsCounted has a Run shrink while one of its pods is given notice.
func TestAWidthThatIsToldFirstIsCounted(t *testing.T) {
	metrics.Register()
	shrunk := func() float64 {
		count, err := testutil.GetCounterMetricValue(metrics.WidthChanges.WithLabelValues("shrunk"))
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	c := reconciling(t, Options{Kube: fake.NewClientset(), Client: &answers{}, events: events.NewFakeRecorder(10)})
	var o lifecycle.Observed
	o.Run = runAt("1")
	o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunRunning, Width: &rqv1.RunWidth{Granted: 32}}
	status := o.Run.Status.DeepCopy()
	status.Width.Granted = 16
	before := shrunk()
	noticed := lifecycle.Deletion{Pod: rankOf(0, corev1.PodRunning), Notice: &lifecycle.Notice{}}
	if _, err := c.order.CarryOut(t.Context(), o,
		lifecycle.Decision{Status: status, Delete: []lifecycle.Deletion{noticed}}); err != nil {
		t.Fatal(err)
	}
	if got := shrunk() - before; got != 1 {
		t.Errorf("%v shrinks are counted, want 1", got)
	}
}
