package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// set is the ReplicaSet of a Deployment for one template.
func set(name string) map[string]any {
	return map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": name, "ownerReferences": []any{map[string]any{"apiVersion": "apps/v1",
			"kind": "Deployment", "name": "web", "uid": "deployment", "controller": true}}}}
}

// ofSet is a pod that a ReplicaSet makes.
func (g *grouped) ofSet(name, set string) *corev1.Pod {
	pod := madeBy("apps/v1", "ReplicaSet", name, g.clock.Now())
	pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = set, types.UID(set)
	return pod
}

// next has a ReplicaSet make another pod, which is to have the place of the first.
func (g *grouped) next(set string) *corev1.Pod {
	g.t.Helper()
	is := g.ofSet("web-b", set)
	g.groups.note(is)
	g.want("another is made", is)
	return is
}

// joins asserts that it has the place of a pod that is gone.
func (g *grouped) joins(was *corev1.Pod) {
	g.t.Helper()
	g.want("it joins", was)
	g.wantOffered("it joins", "web-b")
}

// deployed is a Run that runs with the only pod of a Deployment.
func deployed(t *testing.T) (g *grouped, pod *corev1.Pod, objects map[string]map[string]any) {
	t.Helper()
	return madeFor(t, "Deployment")
}

// madeFor is such a Run, made for what is above its pod as far up as may be read at first.
func madeFor(t *testing.T, above string) (g *grouped, pod *corev1.Pod, objects map[string]map[string]any) {
	t.Helper()
	g = newGrouped(t)
	g.named("o")
	objects = map[string]map[string]any{"ReplicaSet/web-1": set("web-1"), "ReplicaSet/web-2": set("web-2"),
		"Deployment/web": {"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "ns", "name": "web", "uid": "deployment"},
			"spec":     map[string]any{"replicas": int64(1)}}}
	deployment := objects["Deployment/web"]
	if above != "Deployment" {
		delete(objects, "Deployment/web")
	}
	g.groups.client = &withObjects{WithWatch: g.groups.client, has: objects}
	pod = g.ofSet("web-a", "web-1")
	g.groups.note(pod)
	g.want("it is new", pod, "create")
	if of := g.run().OwnerReferences; len(of) != 1 || of[0].Kind != above {
		t.Errorf("the Run goes with %v", of)
	}
	g.runsWith(pod)
	g.want("it runs", pod)
	objects["Deployment/web"] = deployment
	return g, pod, objects
}

// TestThePodOfTheNextTemplate takes the place of that of the one before, as a Deployment makes a ReplicaSet for each,
// and keeps it when the ReplicaSet of the first is gone.
func TestThePodOfTheNextTemplate(t *testing.T) {
	g, was, objects := deployed(t)
	run := g.run()
	g.lost(was)
	g.want("its pod is gone", was)
	g.clock.Step(2 * settles)
	g.want("it has been gone for a moment", was)
	is := g.next("web-2")
	delete(objects, "ReplicaSet/web-1")
	g.joins(was)
	if g.at(is) != "Pod/web-a" || g.run().UID != run.UID {
		t.Errorf("the next pod is in group %s of Run %s", g.at(is), g.run().UID)
	}
}

// TestAPodOfTheNextTemplateThatComesFirst takes the place of the one that goes as it is heard of.
func TestAPodOfTheNextTemplateThatComesFirst(t *testing.T) {
	g, was, _ := deployed(t)
	run, is := g.run(), g.ofSet("web-b", "web-2")
	g.groups.note(is)
	g.want("another is made", is, "create")
	g.lostOf(run, was)
	g.want("the first is gone", is, "delete")
	if at := g.at(is); at != "Pod/web-a" {
		t.Errorf("the next pod is in group %s", at)
	}
}

// TestAPlaceThatADeploymentLeaves is not kept.
func TestAPlaceThatADeploymentLeaves(t *testing.T) {
	g, was, objects := deployed(t)
	objects["Deployment/web"]["spec"] = map[string]any{"replicas": int64(0)}
	g.lost(was)
	g.want("its pod is gone", was)
	g.clock.Step(settles)
	g.want("it has been gone for a moment", was, "delete")
}

// TestAPlaceIsKeptInARollout: with more pods than its Deployment says, the place of one is kept as long as its
// ReplicaSet asks for another.
func TestAPlaceIsKeptInARollout(t *testing.T) {
	g, was, objects := deployed(t)
	run, asks := g.run(), func(n int64) map[string]any { return map[string]any{"replicas": n} }
	g.clock.Step(2 * recent)
	surplus := g.ofSet("web-b", "web-2")
	g.groups.note(surplus)
	g.want("another is made", surplus, "create")
	for _, other := range g.runsOf() {
		if other.UID != run.UID {
			g.runsIn(other, surplus)
		}
	}
	objects["ReplicaSet/web-1"]["spec"], objects["ReplicaSet/web-2"]["spec"] = asks(1), asks(1)
	g.want("it runs", surplus)
	g.lostOf(run, was)
	g.want("the first is gone", was)
	for range 3 {
		g.clock.Step(settles)
		g.want("its ReplicaSet is slow", was)
	}
	objects["ReplicaSet/web-1"]["spec"] = asks(0)
	g.want("its ReplicaSet makes no other", was, "delete")
}

// TestAReplicaSetThatIsGoneIsKnown: a pod of it that waits does not have its Run be taken for another's.
func TestAReplicaSetThatIsGoneIsKnown(t *testing.T) {
	g, was, objects := deployed(t)
	g.lost(was)
	g.next("web-2")
	delete(objects, "ReplicaSet/web-2")
	g.want("its ReplicaSet is gone", was)
}

// TestARunOfAReplicaSetStays: one that was made for what its pods name goes on with the next pod that names it.
func TestARunOfAReplicaSetStays(t *testing.T) {
	g, was, _ := madeFor(t, "ReplicaSet")
	g.lost(was)
	g.next("web-1")
	g.joins(was)
}

// TestADeploymentThatMayNotBeReadAnyMore is known all the same.
func TestADeploymentThatMayNotBeReadAnyMore(t *testing.T) {
	g, was, objects := deployed(t)
	g.lost(was)
	delete(objects, "Deployment/web")
	g.next("web-1")
	g.joins(was)
}

// TestNobodyIsRememberedForATemplate once nothing of it is left.
func TestNobodyIsRememberedForATemplate(t *testing.T) {
	g, was, _ := deployed(t)
	run := g.run()
	g.lost(was)
	is := g.next("web-2")
	g.groups.drop(is)
	g.groups.ended(run)
	if left := []int{len(g.groups.makers), len(g.groups.lasting)}; !cmp.Equal(left, []int{0, 0}) {
		t.Errorf("%v are remembered", left)
	}
}
