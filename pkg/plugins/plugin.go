// Package plugins is the scheduler-framework glue: one small file per concern, each a thin adapter to the book. It holds
// no policy.
package plugins

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// Name of the plugin in the registry and in configurations.
const Name = "Jobtree"

// Jobtree places the pods of Runs by gang: its leader's cycle plans them all, and the rest follow the plan.
type Jobtree struct {
	handle fwk.Handle
	book   *book.Book
	ledger client.Client
	clock  clock.Clock

	turnstile *turnstile
}

// NewFactory returns the plugin's factory. The plugin follows the cluster from the start, and decides once leading is
// closed. Then holds says whether this process still leads; the client set and the configuration of its handle are to be fenced.
func NewFactory(leading <-chan struct{}, holds func() bool) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		metrics.Register()
		args, err := parse(raw)
		if err != nil {
			return nil, err
		}
		ledger, err := controllers.NewClient(handle.KubeConfig())
		if err != nil {
			return nil, err
		}
		pl := &Jobtree{handle: handle, book: book.New(args), ledger: ledger, clock: clock.RealClock{}, turnstile: newTurnstile(bindings)}
		c, err := controllers.New(controllers.Options{
			Args: args, Book: pl.book, Kube: handle.ClientSet(), Client: ledger,
			Shared: handle.SharedInformerFactory(), Events: handle.EventRecorder(), Clock: pl.clock, Holds: holds,
		})
		if err != nil {
			return nil, err
		}
		go c.Start(ctx, leading)
		go pl.act(ctx, c)
		return pl, nil
	}
}

func parse(raw runtime.Object) (*config.Args, error) {
	if raw == nil {
		return config.Parse(nil)
	}
	unknown, ok := raw.(*runtime.Unknown)
	if !ok {
		return nil, fmt.Errorf("arguments of plugin %s: got %T", Name, raw)
	}
	return config.Parse(unknown.Raw)
}

// Name returns the plugin's name.
func (pl *Jobtree) Name() string { return Name }

// reject ends a pod's wait at the barrier, unless it has become part of a plan again. It reports whether there was
// nothing left to do.
func (pl *Jobtree) reject(pod types.UID) bool {
	if pl.book.Waits(pod) {
		return true
	}
	waiting := pl.handle.GetWaitingPod(pod)
	if waiting != nil {
		waiting.Reject(Name, "the gang cannot start as a whole")
	}
	return waiting != nil
}

// ours reports whether a pod is to be placed as part of a Run.
func ours(pod *corev1.Pod) bool { return pod.Labels[rqv1.LabelRun] != "" }

// act carries the book's requests to the scheduling queue. It runs on its own: the queue calls the plugin under its lock,
// so that the plugin must not call the queue from there.
func (pl *Jobtree) act(ctx context.Context, c *controllers.Controllers) {
	logger := klog.FromContext(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-pl.book.Notified():
		}
		actions := pl.book.TakeActions()
		for _, pod := range actions.Reject {
			if !pl.reject(pod) {
				// It may be on its way to the barrier: between Permit and the list of those that wait.
				time.AfterFunc(50*time.Millisecond, func() { pl.reject(pod) })
			}
		}
		if len(actions.Activate) > 0 {
			pods := make(map[string]*corev1.Pod, len(actions.Activate))
			for _, pod := range actions.Activate {
				pods[pod.Namespace+"/"+pod.Name] = pod
			}
			pl.handle.Activate(logger, pods)
		}
		if len(actions.Lookup) > 0 {
			go c.LookUp(ctx, actions.Lookup)
		}
		for _, run := range actions.Reconcile {
			c.Changed(run)
		}
	}
}
