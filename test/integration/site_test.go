package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// site is one test's own part of a cluster: a namespace, nodes of a GPU type that nobody else uses, and an owner with
// all below it.
type site struct {
	*cluster
	t         *testing.T
	namespace string
	flavor    string
	owner     rqv1.Owner
	// restarting are objects whose controllers make the pods of a Run again when it is deleted.
	restarting []client.Object
}

// newSite makes a site named after the test, with domains of nodes of 8 GPUs and a Budget for budget GPUs; none for 0.
// When the test ends its Runs are deleted, and their Leases must close.
func newSite(t *testing.T, c *cluster, domains, nodes int, budget int32) *site {
	t.Helper()
	name := strings.NewReplacer("/", "-", "_", "-", ",", "", " ",
		"-").Replace(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	return namedSite(t, c, strings.TrimRight(name[:min(len(name), 40)], "-"), domains, nodes, budget)
}

// namedSite makes a site as newSite does, with a name of its own: one test may have several.
func namedSite(t *testing.T, c *cluster, name string, domains, nodes int, budget int32) *site {
	t.Helper()
	s := &site{cluster: c, t: t, namespace: name, flavor: name, owner: rqv1.Owner("org:" + name)}
	s.follow()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	for d := range domains {
		s.addNodes(fmt.Sprintf("d%d", d), nodes)
	}
	if budget > 0 {
		s.create(s.budget(name, budget))
	}
	eventually(t, "the namespace's service account", func() error {
		return c.api.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
	t.Cleanup(s.close)
	return s
}

// close deletes the Runs, checks that nothing of them is held any more, and has the namespace and the nodes deleted.
func (s *site) close() {
	ctx, limit := context.Background(), patience
	if s.t.Failed() {
		limit = 15 * time.Second // what broke may stay broken
		s.tell(ctx)
	}
	for _, o := range s.restarting {
		err := s.api.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			s.t.Error(err)
		}
	}
	// One request may take longer than the API server waits.
	err := waitFor(s.t, "its Runs are to be deleted", limit, func() error {
		return s.api.DeleteAllOf(ctx, &rqv1.Run{}, client.InNamespace(s.namespace))
	})
	if err == nil {
		err = waitFor(s.t, "an empty site", limit, func() error {
			s.finish(ctx, s.glance())
			if err := s.glance().emptied(); err != nil {
				return err
			}
			w, err := s.sound(ctx)
			if err != nil {
				return err
			}
			return w.emptied()
		})
	}
	if err == nil {
		err = s.auditFound(ctx)
	}
	if err != nil {
		s.t.Errorf("after the Runs of %s were deleted: %v", s.namespace, err)
		s.tell(ctx)
	}
	if s.t.Failed() { // something may run there
		err = s.api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	} else {
		err = s.Forget(ctx, s.namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		s.t.Error(err)
	}
	for _, budget := range s.glance().budgets { // whoever looks at a site reads those of all
		if err := client.IgnoreNotFound(s.api.Delete(ctx, &budget)); err != nil {
			s.t.Error(err)
		}
	}
	// The shared cluster would have hundreds of kubelets in the end, each with a lease to renew.
	if err := s.api.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{"gpu.flavor": s.flavor}); err != nil {
		s.t.Error(err)
	}
}

// finish ends the site's pods that were told to go: at the end of a test nobody waits for kubelets. A pod may have been
// told only now, because a controller that did not know yet of its Run's deletion had replaced a lost one.
func (s *site) finish(ctx context.Context, w *world) {
	for i := range w.pods {
		pod := &w.pods[i]
		if pod.Namespace != s.namespace || pod.DeletionTimestamp == nil {
			continue
		}
		was := pod.DeepCopy()
		pod.Status.Phase = corev1.PodFailed // else its containers may run, and its GPUs are held for its grace period
		err := s.api.Status().Patch(ctx, pod, client.MergeFrom(was))
		if err == nil {
			err = s.api.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Log(err) // the site is looked at again
		}
	}
}

// tell logs how the Runs that have not completed, their Reservations and their nodes stand.
func (s *site) tell(ctx context.Context) {
	w, err := s.look(ctx)
	if err != nil {
		s.t.Log(err)
		return
	}
	for name, run := range w.runs {
		if run.Status.Phase == rqv1.RunCompleted {
			continue
		}
		s.t.Logf("%s: Run %s is %s: %s %+v", s.namespace, name, run.Status.Phase, run.Status.Message, run.Status.Conditions)
	}
	for i := range w.pods {
		if pod := &w.pods[i]; pod.Labels[rqv1.LabelRun] != "" && (pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil) {
			s.t.Logf("%s: pod %s (%s) on %q, told to go by %v, within %d s, kept by %v: %+v", s.namespace, pod.Name,
				pod.Status.Phase, pod.Spec.NodeName, pod.DeletionTimestamp, ptr.Deref(pod.DeletionGracePeriodSeconds, -1),
				pod.Finalizers, pod.Status.Conditions)
		}
	}
	for _, r := range w.reservations {
		s.t.Logf("%s: Reservation %s is %s: %s; from %v to %v, cuts %+v", s.namespace, r.Name, r.Status.State,
			r.Status.Reason, r.Status.ActivatedAt,
			r.Status.EndedAt, r.Status.Cuts)
	}
	for i := range w.leases {
		l := &w.leases[i]
		s.t.Logf("%s: Lease %s on %s, opened for %s, closed for %q at %v", s.namespace, l.Name, l.Node(), l.Spec.Reason,
			l.Status.ClosureReason, l.Status.Ended)
	}
	s.tellNodes(w)
	s.tellEvents(ctx)
	s.tellWrites()
	s.tellSilent(ctx)
	s.tellLines(s.Kwok, "rror") // its kubelets may not have done what they were to do
	s.tellLines(s.Scheduler, "signs of loss")
	s.tellLines(s.Scheduler, `"Pods are deleted" `, `"namespace":"`+s.namespace+`"`)
}

// tellLines logs those lines of a process's log that have all of some words in them.
func (s *site) tellLines(of *controlplane.Process, words ...string) {
	if of == nil {
		return
	}
	for line := range strings.SplitSeq(of.LogTail(100000), "\n") {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			s.t.Log(line)
		}
	}
}

// tellSilent logs whose kubelets have been silent for long, on the whole cluster: they count against nodeLossLimit. If
// any have, it logs what kwok has said last, which plays them.
func (s *site) tellSilent(ctx context.Context) {
	var renewed coordinationv1.LeaseList
	if err := s.api.List(ctx, &renewed, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		s.t.Log(err)
		return
	}
	silent := false
	defer func() {
		if silent && s.Kwok != nil {
			s.t.Logf("kwok runs: %v\n%s", s.Kwok.Running(), s.Kwok.LogTail(20))
		}
	}()
	for i := range renewed.Items {
		at := renewed.Items[i].Spec.RenewTime
		if at == nil || time.Since(at.Time) > 30*time.Second {
			silent = true
			s.t.Logf("the kubelet lease of node %s, one of %d, was renewed at %v", renewed.Items[i].Name, len(renewed.Items), at)
		}
	}
}

// tellEvents logs what has been said of the site's objects, in order.
func (s *site) tellEvents(ctx context.Context) {
	var events corev1.EventList
	if err := s.api.List(ctx, &events, client.InNamespace(s.namespace)); err != nil {
		s.t.Log(err)
		return
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), a.EventTime.Compare(b.EventTime.Time))
	})
	for i := range events.Items {
		e := &events.Items[i]
		s.t.Logf("%s: at %v %s %s: %s: %s", s.namespace, e.CreationTimestamp.UTC().Format(time.TimeOnly),
			e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

// tellNodes logs those nodes of the site about which there is something to tell.
func (s *site) tellNodes(w *world) {
	for name, node := range w.nodes {
		odd := node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || node.Annotations[rqv1.AnnotationLost] != ""
		for _, c := range node.Status.Conditions {
			odd = odd || (c.Status == corev1.ConditionTrue) != (c.Type == corev1.NodeReady)
		}
		if odd && strings.HasPrefix(name, s.namespace+"-") {
			s.t.Logf("%s: node %s is cordoned: %v, lost: %q, tainted: %v: %+v", s.namespace, name, node.Spec.Unschedulable,
				node.Annotations[rqv1.AnnotationLost], node.Spec.Taints, node.Status.Conditions)
		}
	}
}

// emptied is an error if there are Runs, or pods of some.
func (w *world) emptied() error {
	if pods := w.ours(); len(w.runs) > 0 || pods > 0 {
		return fmt.Errorf("%d Runs and %d pods are left", len(w.runs), pods)
	}
	return nil
}

// ours counts the pods of Runs.
func (w *world) ours() int {
	count := 0
	for _, pod := range w.pods {
		if pod.Labels[rqv1.LabelRun] != "" {
			count++
		}
	}
	return count
}

// settled waits until every invariant holds, and returns the world in which they do.
func (s *site) settled() *world {
	s.t.Helper()
	var w *world
	eventually(s.t, "the invariants", func() (err error) {
		w, err = s.sound(s.t.Context())
		return err
	})
	return w
}

// sound returns the world as the API server has it now; an error lists the invariants that do not hold. It is not asked
// as long as its watches tell of some.
func (s *site) sound(ctx context.Context) (*world, error) {
	if err := s.judged(s.glance()); err != nil {
		return nil, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	return w, s.judged(w)
}

// verdict is an error that lists the invariants that do not hold.
func (s *site) verdict(ctx context.Context) error {
	_, err := s.sound(ctx)
	return err
}

// judged is likewise that of a world.
func (s *site) judged(w *world) error {
	s.ledger.mutex.Lock()
	broken := append(w.broken(), s.ledger.wrong...)
	s.ledger.mutex.Unlock()
	if len(broken) > 0 {
		return fmt.Errorf("\n  %s", strings.Join(broken, "\n  "))
	}
	return nil
}

// has tells whether an owner is the site's, or below it.
func (s *site) has(owner rqv1.Owner) bool {
	return owner == s.owner || strings.HasPrefix(string(owner), string(s.owner)+":")
}

// create creates an object and fails the test unless it succeeds.
func (s *site) create(object client.Object) {
	s.t.Helper()
	if err := s.api.Create(s.t.Context(), object); err != nil {
		s.t.Fatal(err)
	}
}

// delete deletes an object and fails the test unless it succeeds.
func (s *site) delete(object client.Object, options ...client.DeleteOption) {
	s.t.Helper()
	if err := s.api.Delete(s.t.Context(), object, options...); err != nil {
		s.t.Fatal(err)
	}
}

// edit changes an object, again when somebody else changes it meanwhile.
func edit[T client.Object](s *site, object T, change func(T)) {
	s.t.Helper()
	eventually(s.t, "editing "+object.GetName(), func() error {
		if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return s.api.Update(s.t.Context(), object)
	})
}

// node is a node of the site in a domain, played by kwok.
func (s *site) node(name, domain string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), gpuResource: resource.MustParse("8"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        s.namespace + "-" + name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"region": "west", "cluster": "one", "fabric.domain": s.namespace + "-" + domain, "gpu.flavor": s.flavor,
				corev1.LabelHostname: s.namespace + "-" + name,
			},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// addNodes adds nodes DOMAIN-0, DOMAIN-1, … and waits until they are ready.
func (s *site) addNodes(domain string, count int) {
	s.t.Helper()
	var nodes []corev1.Node
	for i := range count {
		nodes = append(nodes, *s.node(fmt.Sprintf("%s-%d", domain, i), domain))
	}
	s.load(nodes...)
}

// load creates nodes and waits until they are ready.
func (s *site) load(nodes ...corev1.Node) {
	s.t.Helper()
	created, err := s.CreateNodes(s.t.Context(), nodes)
	if err == nil {
		err = s.WaitNodesReady(s.t.Context(), created)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// budget is a Budget of the site's owner with one envelope, named all.
func (s *site) budget(name string, concurrency int32) *rqv1.Budget {
	return &rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: rqv1.BudgetSpec{Owner: s.owner, Envelopes: []rqv1.Envelope{
			{Name: "all", Flavor: s.flavor, Concurrency: concurrency},
		}},
	}
}
