package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// objects are what the API server has, and by Run what a decision on one needs.
type objects struct {
	Nodes   map[string]*corev1.Node
	Budgets map[string]*rqv1.Budget
	Runs    map[string]*rqv1.Run
	Pods    map[types.UID]*corev1.Pod
	Leases  map[string]*rqv1.Lease
	// Reservations are as they are stored, Seen as the process has seen them, which is a while later, and under what
	// is on its way.
	Reservations map[string]*rqv1.Reservation
	Seen         map[string]*rqv1.Reservation
	under        []version
	// services are the Services of Runs, by name, and their Runs.
	services map[string]types.UID
	// guards are the PodDisruptionBudgets of Runs, by name.
	guards map[string]*policyv1.PodDisruptionBudget

	// hangs says that the watch of Runs' pods tells nothing for now, and untold are the pods that have changed, come or
	// gone since, as the process was told of them before; nil for new ones.
	hangs  bool
	untold map[types.UID]*corev1.Pod
	// writesLate says that the watch of Runs tells nothing for now of the statuses that the process writes, and lateRuns
	// are those of which it has written one since.
	writesLate bool
	lateRuns   map[string]bool

	podsOf   index[types.UID] // by the label of the Run
	leasesOf index[string]    // those of each rank, closed ones too
	openOf   index[string]    // the open ones
	seenOf   index[string]
}

// version is a Reservation as it was once, or that it is gone.
type version struct {
	*rqv1.Reservation
	gone bool
}

func newObjects() objects {
	return objects{
		Nodes: map[string]*corev1.Node{}, Budgets: map[string]*rqv1.Budget{}, Runs: map[string]*rqv1.Run{},
		Pods: map[types.UID]*corev1.Pod{}, Leases: map[string]*rqv1.Lease{}, services: map[string]types.UID{},
		guards:       map[string]*policyv1.PodDisruptionBudget{},
		untold:       map[types.UID]*corev1.Pod{},
		lateRuns:     map[string]bool{},
		Reservations: map[string]*rqv1.Reservation{}, Seen: map[string]*rqv1.Reservation{},
		podsOf: index[types.UID]{}, leasesOf: index[string]{}, openOf: index[string]{}, seenOf: index[string]{},
	}
}

// index has the keys of objects by the name of something that they are about.
type index[K ~string] map[string]map[K]bool

func (i index[K]) add(of string, key K) {
	if i[of] == nil {
		i[of] = map[K]bool{}
	}
	i[of][key] = true
}

func (i index[K]) drop(of string, key K) {
	delete(i[of], key)
	if len(i[of]) == 0 {
		delete(i, of)
	}
}

// sorted returns the keys that are about something, in order.
func (i index[K]) sorted(of string) []K { return slices.Sorted(maps.Keys(i[of])) }

// SetNode makes or changes a node.
func (c *Cluster) SetNode(node *corev1.Node) {
	if was := c.Nodes[node.Name]; was == nil || !maps.Equal(was.Labels, node.Labels) {
		c.altered++
	}
	c.Nodes[node.Name] = node
	c.Book.SetNode(node)
}

// SetBudget makes or changes a Budget.
func (c *Cluster) SetBudget(budget *rqv1.Budget) {
	c.Budgets[budget.Name] = budget
	c.Book.Budgets.SetBudget(budget)
}

// DropBudget deletes a Budget.
func (c *Cluster) DropBudget(name string) {
	delete(c.Budgets, name)
	c.Book.Budgets.DeleteBudget(name)
}

// SetRun makes or changes a Run.
func (c *Cluster) SetRun(run *rqv1.Run) {
	was := c.Runs[run.Name]
	c.Runs[run.Name] = run
	c.changed[run.Name] = true
	delete(c.lateRuns, run.Name)
	c.Book.SetRun(run)
	c.sawRun(was, run)
}

// ForgetRun deletes a Run's object alone, as its pods' references keep them, or do not.
func (c *Cluster) ForgetRun(name string) {
	run := c.Runs[name]
	delete(c.Runs, name)
	delete(c.lateRuns, name)
	c.changed[name] = true
	c.Book.DeleteRun(run)
	c.sawRun(run, nil)
}

// SetPod makes or changes a pod. A new one is tried once.
func (c *Cluster) SetPod(pod *corev1.Pod) {
	withheld := c.withhold(pod.UID)
	was := c.Pods[pod.UID]
	if was == nil {
		if !c.Hasty || c.unranked(pod) || c.Book.Gate(pod) == "" {
			c.Queue[pod.UID] = true
		}
	} else {
		c.podsOf.drop(was.Labels[rqv1.LabelRun], pod.UID)
	}
	c.Pods[pod.UID] = pod
	if run, ours := pod.Labels[rqv1.LabelRun]; ours {
		c.podsOf.add(run, pod.UID)
	}
	if !withheld {
		c.tellPod(pod)
	}
	c.Book.SetPod(pod)
	c.sawPod(was, pod)
}

// DeletePod has a pod be gone that is deleted. Its kubelet says first that it has ended.
func (c *Cluster) DeletePod(uid types.UID) {
	if pod := c.Pods[uid]; rank.MayRun(pod) && !c.Lost(pod.Spec.NodeName) {
		c.tellToGo(pod, c.Now)
		c.endContainers(uid)
	}
	c.removePod(uid)
}

// Vanish has somebody delete a pod by force: its object goes, whatever its containers do.
func (c *Cluster) Vanish(uid types.UID) {
	if pod, none := c.Pods[uid].DeepCopy(), int64(0); !rank.ByForce(pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: c.Now}, &none
		c.SetPod(pod)
	}
	c.removePod(uid)
}

// removePod removes a pod's object.
func (c *Cluster) removePod(uid types.UID) {
	pod, withheld := c.Pods[uid], c.withhold(uid)
	delete(c.Pods, uid)
	c.podsOf.drop(pod.Labels[rqv1.LabelRun], uid)
	c.Book.DeletePod(pod)
	if !withheld {
		c.tellGone(pod)
	}
	c.Unreserve(uid)
	c.sawPod(pod, nil)
}

// SetLease stores a Lease, and has the process see it.
func (c *Cluster) SetLease(lease *rqv1.Lease) {
	c.storeLease(lease)
	c.Book.SetLease(lease)
}

func (c *Cluster) storeLease(lease *rqv1.Lease) {
	run := lease.Spec.RunRef.Name
	c.Leases[lease.Name] = lease
	c.leasesOf.add(rankOf(lease), lease.Name)
	c.openOf.drop(run, lease.Name)
	if !lease.Status.Closed {
		c.openOf.add(run, lease.Name)
	}
	c.changed[run] = true
}

// ForgetLease removes a Lease's object, which the process does not see.
func (c *Cluster) ForgetLease(name string) {
	lease := c.Leases[name]
	delete(c.Leases, name)
	c.leasesOf.drop(rankOf(lease), name)
	c.openOf.drop(lease.Spec.RunRef.Name, name)
}

// rankOf is the key of the rank that a Lease is of.
func rankOf(lease *rqv1.Lease) string {
	return rankKey(lease.Spec.RunRef.Name, lease.Labels[rqv1.LabelRole], lease.Labels[rqv1.LabelIndex])
}

func rankKey(run, role, index string) string { return run + "/" + role + "/" + index }

// SortedPods returns the UIDs of all pods, in order.
func (o *objects) SortedPods() []types.UID { return slices.Sorted(maps.Keys(o.Pods)) }

// PodsOf returns a Run's pods.
func (o *objects) PodsOf(run string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, uid := range o.podsOf.sorted(run) {
		out = append(out, o.Pods[uid])
	}
	return out
}

// OpenLeases returns all open Leases.
func (o *objects) OpenLeases() []*rqv1.Lease {
	var out []*rqv1.Lease
	for _, name := range slices.Sorted(maps.Keys(o.Leases)) {
		if !o.Leases[name].Status.Closed {
			out = append(out, o.Leases[name])
		}
	}
	return out
}

// Names returns the names of Runs that there are, or of which pods or open Leases are left.
func (o *objects) Names() []string { return slices.Sorted(maps.Keys(o.names())) }

// Live returns those, and the ones for which Reservations wait.
func (o *objects) Live() []string {
	names := o.names()
	for _, r := range o.Reservations {
		if !r.Ended() {
			names[r.Spec.RunRef.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (o *objects) names() map[string]bool {
	names := map[string]bool{}
	for name := range o.Runs {
		names[name] = true
	}
	for name := range o.podsOf {
		names[name] = true
	}
	for name := range o.openOf {
		names[name] = true
	}
	return names
}
