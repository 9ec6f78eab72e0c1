package zoo

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/test/story"
)

// keeper does what the controllers of a workload do, as the table of kinds says: it makes what they make of its
// objects, and does what they do about pods that are gone.
type keeper struct {
	cluster story.Cluster
	// real says that those controllers run that are built in.
	real  bool
	roots []*object
	// made are the objects that are no pods, by what asks for them, and pods the names of the pods likewise.
	made map[string]*object
	pods map[string]string
	// scopes are which pods are made again together, and anew those of which all are, once the last has gone.
	scopes map[string]string
	anew   map[string]bool
	// stopped says that nothing is made any more.
	stopped bool
}

func newKeeper(c story.Cluster, real bool) *keeper {
	return &keeper{cluster: c, real: real,
		made: map[string]*object{}, pods: map[string]string{}, scopes: map[string]string{},
		anew: map[string]bool{}}
}

// sight is what controllers see of a cluster.
type sight struct {
	*keeper
	world *story.World
}

// pod returns the pod of a name; nil where there is none.
func (s *sight) pod(name string) *corev1.Pod {
	for _, pod := range s.world.Pods {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

// named returns one of the workload's objects.
func (s *sight) named(kind, name string) *object {
	for _, o := range s.roots {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// reached reports whether all pods with some labels, of which there are some, are complete, or ready.
func (s *sight) reached(labels words, status string) bool {
	some := false
	for _, pod := range s.world.Pods {
		is := true
		for key, value := range labels {
			is = is && pod.Labels[key] == value
		}
		if !is || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		some = true
		if pod.Status.Phase != corev1.PodSucceeded && (status == "Complete" || !ready(pod)) {
			return false
		}
	}
	return some
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// apply makes objects as a person does, and what their controllers make of them.
func (k *keeper) apply(objects []*object) error {
	for _, o := range objects {
		o = o.DeepCopy()
		if err := k.cluster.Create(o); err != nil {
			return fmt.Errorf("making %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		k.roots = append(k.roots, o)
	}
	return k.tend()
}

// tend does what there is to do now.
func (k *keeper) tend() error {
	if k.stopped {
		return nil
	}
	seen := &sight{keeper: k, world: k.cluster.World()}
	for _, o := range k.roots {
		if err := k.tendTo(seen, o, o); err != nil {
			return err
		}
	}
	return nil
}

// tendTo makes what the controller of an object makes of it, and so on. root is what all of it is made of.
func (k *keeper) tendTo(seen *sight, o, root *object) error {
	kind := kindOf(o)
	if kind == nil || kind.makes == nil || k.real && kind.builtIn {
		return nil
	}
	children := kind.makes(o, seen)
	for i, child := range children {
		slot := fmt.Sprintf("%s/%s%s", o.GetUID(), child.GetKind(), child.GetName())
		if child.GetName() == "" {
			slot += fmt.Sprint(i)
		}
		if child.GetKind() == "Pod" {
			if err := k.keepPod(seen, slot, child, o, root); err != nil {
				return err
			}
			continue
		}
		if k.made[slot] == nil {
			if err := k.cluster.Create(child); err != nil {
				return fmt.Errorf("making %s %s: %w", child.GetKind(), child.GetName(), err)
			}
			k.made[slot] = child
		}
		if err := k.scale(k.made[slot], child); err != nil {
			return err
		}
		if err := k.tendTo(seen, k.made[slot], root); err != nil {
			return err
		}
	}
	return k.shrink(o, len(children))
}

// scale has an object ask for as many pods as its controller says now.
func (k *keeper) scale(is, to *object) error {
	replicas := at(to.Object, "spec.replicas")
	if replicas == nil || at(is.Object, "spec.replicas") == replicas {
		return nil
	}
	return k.cluster.Change(is, func() { mapAt(is.Object, "spec")["replicas"] = replicas })
}

// shrink deletes the pods of an object that it asks for no more.
func (k *keeper) shrink(o *object, to int) error {
	for i := to; ; i++ {
		slot := fmt.Sprintf("%s/Pod%d", o.GetUID(), i)
		if k.pods[slot] == "" {
			return nil
		}
		if err := k.remove(k.pods[slot]); err != nil {
			return err
		}
		delete(k.pods, slot)
	}
}

// keepPod makes a pod that is not there, as its controller does.
func (k *keeper) keepPod(seen *sight, slot string, pod, by, root *object) error {
	does, scope := k.lost(by, root, pod)
	k.scopes[slot] = scope
	if k.anew[scope] {
		k.begin(seen, scope)
	}
	name, was := k.pods[slot], seen.pod(k.pods[slot])
	gone := was == nil || was.DeletionTimestamp != nil || was.Status.Phase == corev1.PodFailed
	switch {
	case !gone:
		if k.anew[scope] || was.Labels[revisionHash] != pod.GetLabels()[revisionHash] {
			return k.remove(name)
		}
		return nil
	case name != "" && does == never:
		return nil
	case name != "" && does == all && !k.anew[scope]:
		k.anew[scope] = true
		return nil // the others go first
	case k.anew[scope], was != nil && pod.GetName() != "":
		if was != nil && was.DeletionTimestamp == nil {
			return k.remove(name)
		}
		return nil
	}
	if err := k.cluster.Create(pod); err != nil {
		return fmt.Errorf("making pod %s%s: %w", pod.GetName(), pod.GetGenerateName(), err)
	}
	k.pods[slot] = pod.GetName()
	return nil
}

// lost returns what is done about a pod that goes, and the pods that are made again with it.
func (k *keeper) lost(by, root, pod *object) (loss, string) {
	for _, o := range []*object{root, by} {
		kind := kindOf(o)
		if kind.lost != nil {
			does := kind.lost(o)
			return does, kind.scope + "=" + pod.GetLabels()[kind.scope]
		}
	}
	return again, ""
}

// begin has the pods of a scope be made anew if the last of them has gone.
func (k *keeper) begin(seen *sight, scope string) {
	for slot, name := range k.pods {
		if k.scopes[slot] == scope && seen.pod(name) != nil {
			return
		}
	}
	for slot := range k.pods {
		if k.scopes[slot] == scope {
			delete(k.pods, slot)
		}
	}
	delete(k.anew, scope)
}

func (k *keeper) remove(pod string) error {
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.cluster.Site().Namespace, Name: pod}}
	return client.IgnoreNotFound(k.cluster.Delete(o))
}

// stop deletes a workload's objects, and then what was made of them, as the garbage collector does.
func (k *keeper) stop() error {
	k.stopped = true
	seen := &sight{keeper: k, world: k.cluster.World()}
	for _, o := range k.roots {
		if o.GetKind() == "Pod" {
			k.pods["root/"+o.GetName()] = o.GetName()
			continue
		}
		err := k.cluster.Delete(o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(k.made)) {
		err := k.cluster.Delete(k.made[slot], client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(k.pods)) {
		if seen.pod(k.pods[slot]) == nil {
			continue
		}
		if err := k.remove(k.pods[slot]); err != nil {
			return err
		}
	}
	return nil
}
