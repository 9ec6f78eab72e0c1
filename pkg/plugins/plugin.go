package plugins

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Name of the plugin in the registry and in configurations.
const Name = "Jobtree"

// Jobtree places the pods of Runs by gang: its leader's cycle plans them all, and the rest follow the plan.
type Jobtree struct {
	handle fwk.Handle
	book   *book.Book
	ledger client.Client
	clock  clock.Clock
	// process ends with the process: what a binding leaves to be found out outlasts the binding.
	process   context.Context
	turnstile *turnstile
	sought    sync.Map // the pods, by UID, for whose Leases somebody looks
}

// NewFactory returns the plugin's factory. Every profile that names the plugin has one of its own, which asks the same
// book as all others do, and writes Leases with the same client.
func NewFactory(b *book.Book, ledger client.Client, clock clock.Clock) frameworkruntime.PluginFactory {
	turnstile := newTurnstile(bindings, replacing)
	b.AskRules()
	var first sync.Once // the queue, and those that wait at the barrier, are the process's: one handle reaches them all
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		pl := &Jobtree{handle: handle, book: b, ledger: ledger, clock: clock, process: ctx, turnstile: turnstile}
		first.Do(func() { go pl.act(ctx) })
		return pl, nil
	}
}

// ParseArgs returns the plugin's arguments, as they are found in a profile.
func ParseArgs(raw runtime.Object) (*config.Args, error) {
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

// act carries the book's requests to the scheduling queue. It runs on its own: the queue calls the plugin under its
// lock, so that the plugin must not call the queue from there.
func (pl *Jobtree) act(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-pl.book.ToQueue().Filled():
		}
		asked := pl.book.ToQueue().Take()
		for _, pod := range asked.Reject {
			if !pl.reject(pod) {
				// It may be on its way to the barrier: between Permit and the list of those that wait.
				time.AfterFunc(50*time.Millisecond, func() { pl.reject(pod) })
			}
		}
		if len(asked.Activate) > 0 {
			pods := make(map[string]*corev1.Pod, len(asked.Activate))
			for _, pod := range asked.Activate {
				pods[pod.Namespace+"/"+pod.Name] = pod
			}
			pl.handle.Activate(logger, pods)
		}
	}
}
