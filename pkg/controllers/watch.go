package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// byRun indexes pods and Leases by the Run that they name.
const byRun = "run"

// watches are the informers of our kinds and of our pods.
type watches struct {
	runs, budgets, leases, pods, reservations cache.SharedIndexInformer
	// heartbeats are the kubelets'. Nothing waits for them: what is not seen is no evidence.
	heartbeats cache.SharedIndexInformer
	// guards are PodDisruptionBudgets, those of Runs and others.
	guards        cache.SharedIndexInformer
	registrations []cache.ResourceEventHandlerRegistration
	// unseen is told of pods' news before anybody looks at them.
	unseen *unseen
}

func newWatches(c client.WithWatch, kube kubernetes.Interface) *watches {
	return &watches{
		runs:    newInformer(c, &rqv1.Run{}, &rqv1.RunList{}, client.ListOptions{}, nil),
		budgets: newInformer(c, &rqv1.Budget{}, &rqv1.BudgetList{}, client.ListOptions{}, nil),
		leases: newInformer(c, &rqv1.Lease{}, &rqv1.LeaseList{}, *openLeases(),
			func(o any) types.NamespacedName { l := o.(*rqv1.Lease); return runOfLease(l) }),
		pods: ourPods(kube), heartbeats: newHeartbeats(kube), guards: guardsOf(kube),
		reservations: newInformer(c, &rqv1.Reservation{}, &rqv1.ReservationList{}, client.ListOptions{},
			func(o any) types.NamespacedName { return runOfReservation(o.(*rqv1.Reservation)) }),
	}
}

// openLeases narrows a list or a watch to the Leases that are open: what is closed never matters to a decision again.
func openLeases() *client.ListOptions {
	return &client.ListOptions{FieldSelector: fields.OneTermNotEqualSelector("status.closed", "true")}
}

// newInformer watches one of our kinds. options narrow what is watched; run, if any, indexes it.
func newInformer(c client.WithWatch, kind client.Object, list client.ObjectList, options client.ListOptions,
	run func(any) types.NamespacedName) cache.SharedIndexInformer {
	fresh := func(raw metav1.ListOptions) (client.ObjectList, *client.ListOptions) {
		o := options
		o.Raw = &raw
		return list.DeepCopyObject().(client.ObjectList), &o
	}
	indexers := cache.Indexers{}
	if run != nil {
		indexers[byRun] = func(o any) ([]string, error) { return []string{run(o).String()}, nil }
	}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into, o := fresh(raw)
			return into, c.List(ctx, into, o)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			into, o := fresh(raw)
			return c.Watch(ctx, into, o)
		},
	}, kind, 0, indexers)
	keepLean(informer)
	return informer
}

// keepLean has an informer that has not started keep only what is read.
func keepLean(informer cache.SharedInformer) {
	if err := informer.SetTransform(lean); err != nil {
		panic(err) // nothing has started yet
	}
}

// ourPods watches the pods of Runs in every phase: the scheduler's own informer drops pods as they end.
func ourPods(kube kubernetes.Interface) cache.SharedIndexInformer {
	ours, err := labels.NewRequirement(rqv1.LabelRun, "exists", nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.NewSelector().Add(*ours).String()
		}))
	pods := factory.Core().V1().Pods().Informer()
	err = pods.AddIndexers(cache.Indexers{byRun: func(o any) ([]string, error) {
		return []string{runOfPod(o.(*corev1.Pod)).String()}, nil
	}})
	if err != nil {
		panic(err) // nothing has started yet
	}
	keepLean(pods)
	return pods
}

func runOfPod(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[rqv1.LabelRun]}
}

func runOfReservation(r *rqv1.Reservation) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Spec.RunRef.Namespace, Name: r.Spec.RunRef.Name}
}

func runOfLease(l *rqv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: l.Spec.RunRef.Namespace, Name: l.Spec.RunRef.Name}
}

// handle calls set for objects that are there and drop for those that are gone.
func handle[T metav1.Object](w *watches, i cache.SharedInformer, set, drop func(T)) error {
	registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { set(o.(T)) },
		UpdateFunc: func(old, o any) {
			if old.(T).GetUID() != o.(T).GetUID() {
				drop(old.(T)) // gone and there again between two lists
			}
			set(o.(T))
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if object, ok := o.(T); ok {
				drop(object)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	w.registrations = append(w.registrations, registration)
	return nil
}

// feed keeps the book in step with the API. It tells changed which Runs an event concerns, and spent which Budgets'
// records.
func (w *watches) feed(b *book.Book, shared informers.SharedInformerFactory,
	changed func(types.NamespacedName, lane.Work), spent func([]string)) error {
	name := func(o metav1.Object) types.NamespacedName {
		return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	ignore := func(types.NamespacedName, lane.Work) {}
	if changed == nil {
		changed = ignore
	}
	for _, add := range []func() error{
		func() error {
			return handle(w, shared.Core().V1().Nodes().Informer(), b.SetNode, func(n *corev1.Node) { b.RemoveNode(n.Name) })
		},
		func() error { return handle(w, shared.Core().V1().Pods().Informer(), b.SetPod, b.DeletePod) },
		func() error {
			return handle(w, shared.Scheduling().V1().PriorityClasses().Informer(),
				func(c *schedulingv1.PriorityClass) { b.SetPriorityClass(c.Name, c.Value) },
				func(c *schedulingv1.PriorityClass) { b.DropPriorityClass(c.Name) })
		},
		func() error {
			return handle(w, shared.Core().V1().Namespaces().Informer(),
				func(n *corev1.Namespace) {
					if n.DeletionTimestamp != nil { // it may hang in that for long
						spent(b.Budgets.NamespaceLeaves(n.Name, false))
					}
				},
				func(n *corev1.Namespace) { spent(b.Budgets.NamespaceLeaves(n.Name, true)) })
		},
		func() error {
			return handle(w, w.budgets, b.Budgets.SetBudget, func(o *rqv1.Budget) { b.Budgets.DeleteBudget(o.Name) })
		},
		func() error {
			return handle(w, w.runs,
				func(r *rqv1.Run) { b.SetRun(r); changed(name(r), lane.OfRun(r, false)) },
				func(r *rqv1.Run) { b.DeleteRun(r); changed(name(r), lane.OfRun(r, true)) })
		},
		func() error {
			return handle(w, w.leases,
				func(l *rqv1.Lease) { b.SetLease(l); changed(runOfLease(l), lane.OfLease(false)) },
				func(l *rqv1.Lease) { b.LeaseGone(name(l)); changed(runOfLease(l), lane.OfLease(true)) })
		},
		func() error {
			return handle(w, w.reservations,
				func(r *rqv1.Reservation) {
					b.SetReservation(r)
					changed(runOfReservation(r), lane.OfReservation(r, false))
				},
				func(r *rqv1.Reservation) {
					b.DeleteReservation(r)
					changed(runOfReservation(r), lane.OfReservation(r, true))
				})
		},
		func() error {
			return handle(w, w.pods,
				func(p *corev1.Pod) {
					w.unseen.told(p)
					b.SetMember(p)
					changed(runOfPod(p), lane.OfPod(p, false))
				},
				func(p *corev1.Pod) {
					w.unseen.told(p)
					b.DeleteMember(p)
					changed(runOfPod(p), lane.OfPod(p, true))
				})
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// sync starts the informers and waits until the book has seen everything that there is.
func (w *watches) sync(ctx context.Context) bool {
	for _, i := range []cache.SharedIndexInformer{w.runs, w.budgets, w.leases, w.pods, w.reservations, w.heartbeats,
		w.guards} {
		go i.RunWithContext(ctx)
	}
	synced := make([]cache.InformerSynced, 0, len(w.registrations))
	for _, r := range w.registrations {
		synced = append(synced, r.HasSynced)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// awaitKinds waits until the API server serves our kinds.
func awaitKinds(ctx context.Context, kube kubernetes.Interface) error {
	logger := klog.FromContext(ctx)
	told := false
	return wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(context.Context) (bool, error) {
		served, err := kube.Discovery().ServerResourcesForGroupVersion(rqv1.GroupVersion.String())
		if err == nil && len(served.APIResources) > 0 && hasAll(served) {
			return true, nil
		}
		if !told {
			logger.Info("Waiting for the custom resource definitions to be installed", "groupVersion", rqv1.GroupVersion, "err",
				err)
			told = true
		}
		return false, nil
	})
}

func hasAll(served *metav1.APIResourceList) bool {
	kinds := map[string]bool{}
	for i := range served.APIResources {
		kinds[served.APIResources[i].Kind] = true
	}
	return kinds["Run"] && kinds["Budget"] && kinds["Lease"] && kinds["Reservation"]
}
