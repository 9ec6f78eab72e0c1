package simulated

import (
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/test/story"
)

// World is what the API shows.
func (c *Cluster) World() *story.World {
	w := &story.World{World: audit.World{At: c.Now(), Nodes: values(c.Nodes), Pods: values(c.Pods), Runs: values(c.Runs),
		Leases: values(c.Leases), Reservations: values(c.Reservations)}, Events: c.events}
	w.Pods = append(w.Pods, values(c.Bystanders)...)
	for _, b := range c.Budgets {
		if report, told := c.Book.Budgets.BudgetReport(b, c.Now()); told {
			b = b.DeepCopy()
			b.Status = report.Status
			b.Status.Conditions = c.stated[b.Name]
		}
		w.Budgets = append(w.Budgets, b)
	}
	w.Sort()
	return w
}

func values[K comparable, V any](m map[K]V) []V { return slices.Collect(maps.Values(m)) }

// Create makes objects.
func (c *Cluster) Create(objects ...client.Object) error {
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			node := o.DeepCopy()
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady,
				Status: corev1.ConditionTrue})
			c.SetNode(node)
		case *rqv1.Budget:
			budget := o.DeepCopy()
			budget.UID, budget.Generation = c.UID(), 1
			c.SetBudget(budget)
		case *rqv1.Run:
			if c.Runs[o.Name] != nil {
				return fmt.Errorf("Run %s is there", o.Name)
			}
			c.Submit(o.DeepCopy())
		case *corev1.Pod:
			c.createPod(o)
		case *unstructured.Unstructured:
			return c.createObject(o)
		case *schedulingv1.PriorityClass:
			c.classes[o.Name] = o.Value
			c.Book.SetPriorityClass(o.Name, o.Value)
		default:
			return fmt.Errorf("nobody can create a %T here", o)
		}
	}
	return nil
}

// ObjectKey is what an object of a kind that nothing here knows is found by.
func ObjectKey(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

func keyOf(o *unstructured.Unstructured) string {
	return ObjectKey(o.GroupVersionKind().GroupKind(), o.GetName())
}

// createObject makes an object that nothing here knows, or a pod.
func (c *Cluster) createObject(o *unstructured.Unstructured) error {
	if o.GetKind() == "Pod" {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
			return err
		}
		c.createPod(pod)
		o.SetName(pod.Name)
		o.SetUID(pod.UID)
		return nil
	}
	if c.Objects[keyOf(o)] != nil {
		return fmt.Errorf("%s is there", keyOf(o))
	}
	o.SetUID(c.UID())
	c.Objects[keyOf(o)] = o.DeepCopy()
	return nil
}

// createPod makes a pod that is no Run's.
func (c *Cluster) createPod(given *corev1.Pod) {
	given.UID = c.UID()
	if given.Name == "" {
		given.Name = given.GenerateName + string(given.UID[:8])
	}
	pod := given.DeepCopy()
	pod.CreationTimestamp = metav1.NewTime(c.Now().Truncate(time.Second))
	admits(pod)
	if pod.Spec.NodeName == "" {
		pod.Status.Phase = corev1.PodPending
		c.SetPod(pod)
		return
	}
	pod.Status.Phase = corev1.PodRunning
	if rank.PodGPUs(&pod.Spec, c.Args.GPUResource...) > 0 {
		c.SetPod(pod)
		return
	}
	c.SetBystander(pod)
}

// Change changes an object, with its status.
func (c *Cluster) Change(object client.Object, change func()) error {
	switch o := object.(type) {
	case *corev1.Node:
		return c.changeNode(o, change)
	case *rqv1.Budget:
		is, err := known(c.Budgets, "Budget", o.Name)
		if err != nil {
			return err
		}
		is.DeepCopyInto(o)
		change()
		o.Generation++
		c.SetBudget(o.DeepCopy())
	case *rqv1.Run:
		is, err := known(c.Runs, "Run", o.Name)
		if err != nil {
			return err
		}
		is.DeepCopyInto(o)
		change()
		if !equality.Semantic.DeepEqual(is.Spec, o.Spec) {
			o.Generation++
		}
		c.SetRun(o.DeepCopy())
	case *corev1.Pod:
		is, err := c.podNamed(o.Name)
		if err != nil {
			return err
		}
		is.DeepCopyInto(o)
		change()
		c.SetPod(o.DeepCopy())
	case *coordinationv1.Lease:
		change()
		c.judge.silence(c, o.Name)
	case *unstructured.Unstructured:
		is := c.Objects[keyOf(o)]
		if is == nil {
			return fmt.Errorf("there is no %s", keyOf(o))
		}
		is.DeepCopyInto(o)
		change()
		c.Objects[keyOf(o)] = o.DeepCopy()
	case *corev1.ConfigMap:
		change()
		c.brakes = brake.Parse(o.Data)
		c.Book.SetBrake(c.brakes)
	default:
		return fmt.Errorf("nobody can change a %T here", o)
	}
	return nil
}

func (c *Cluster) podNamed(name string) (*corev1.Pod, error) {
	for _, pod := range c.Pods {
		if pod.Name == name {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("there is no pod %s", name)
}

// Delete deletes an object.
func (c *Cluster) Delete(object client.Object, options ...client.DeleteOption) error {
	name := object.GetName()
	switch o := object.(type) {
	case *unstructured.Unstructured:
		delete(c.Objects, keyOf(o))
	case *corev1.Node:
		if _, err := known(c.Nodes, "node", name); err != nil {
			return err
		}
		c.ForgetNode(name)
	case *rqv1.Budget:
		if _, err := known(c.Budgets, "Budget", name); err != nil {
			return err
		}
		c.DropBudget(name)
	case *rqv1.Run:
		if _, err := known(c.Runs, "Run", name); err != nil {
			return err
		}
		c.DeleteRun(name)
	case *corev1.Pod:
		return c.deletePod(name, options)
	case *coordinationv1.Lease:
		c.judge.hear(name)
	case *schedulingv1.PriorityClass:
		delete(c.classes, name)
		c.Book.DropPriorityClass(name)
	default:
		return fmt.Errorf("nobody can delete a %T here", object)
	}
	return nil
}

// deletePod deletes a pod; with a grace period of 0 its object goes at once.
func (c *Cluster) deletePod(name string, options []client.DeleteOption) error {
	for uid, pod := range c.Bystanders {
		if pod.Name == name {
			c.DropBystander(uid)
			return nil
		}
	}
	pod, err := c.podNamed(name)
	if err != nil {
		return err
	}
	grace := (&client.DeleteOptions{}).ApplyOptions(options).GracePeriodSeconds
	if grace != nil && *grace == 0 {
		c.Vanish(pod.UID)
		return nil
	}
	c.TerminateWithin(pod.UID, grace)
	return nil
}

// Evict asks that a pod be evicted.
func (c *Cluster) Evict(name string) error {
	pod, err := c.podNamed(name)
	if err == nil && !c.AskToEvict(pod.UID) {
		err = fmt.Errorf("a PodDisruptionBudget keeps pod %s", name)
	}
	return err
}
