package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// offering has a node of 8 GPUs offer something else.
func offering(node *corev1.Node, has map[corev1.ResourceName]string) *corev1.Node {
	resources := node.Status.Allocatable.DeepCopy()
	delete(resources, gpuResource)
	for name, quantity := range has {
		resources[name] = resource.MustParse(quantity)
	}
	node.Status.Allocatable, node.Status.Capacity = resources, resources
	return node
}

// checkRequests has each pod of a Run request so many of one resource and nothing else, and each have a Lease of its
// own, open and paid by the namespace's Budget, for as many GPUs on its node.
func (s *site) checkRequests(run string, pods int, name corev1.ResourceName, each int64) {
	s.t.Helper()
	var held, requested []string
	for _, lease := range s.leasesOf(run) {
		if lease.Status.Closed || lease.Spec.Payer.Budget != s.namespace {
			s.t.Errorf("Lease %s of Run %s: %+v", lease.Name, run, lease)
		}
		held = append(held, fmt.Sprintf("%d on %s", lease.GPUs(), lease.Node()))
	}
	for _, pod := range s.podsOf(run) {
		limits := pod.Spec.Containers[0].Resources.Limits
		if quantity := limits[name]; len(limits) != 1 || quantity.Value() != each {
			s.t.Errorf("pod %s on %s requests %v, not %d %s", pod.Name, pod.Spec.NodeName, limits, each, name)
		}
		requested = append(requested, fmt.Sprintf("%d on %s", each, pod.Spec.NodeName))
	}
	slices.Sort(held)
	slices.Sort(requested)
	if diff := cmp.Diff(requested, held); diff != "" || len(held) != pods {
		s.t.Errorf("Run %s has %d Leases, not %d; GPUs (-requested +leased):\n%s", run, len(held), pods, diff)
	}
}

// TestGPUsAndTPUs has a fleet of nodes with GPUs and others with TPUs, and Runs for each: their pods request what nodes
// of their type have, and go nowhere else.
func TestGPUsAndTPUs(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, withoutElection, map[string]any{"gpuResource": []any{gpuResource, tpuResource}})
	gpus, tpus := namedSite(t, c, "h100s", 1, 2, 64), namedSite(t, c, "tpus", 0, 0, 64)
	four := map[corev1.ResourceName]string{tpuResource: "4"}
	tpus.load(*offering(tpus.node("t0", "a"), four), *offering(tpus.node("t1", "a"), four),
		*offering(tpus.node("both", "a"), map[corev1.ResourceName]string{tpuResource: "4", gpuResource: "8"}),
		*offering(tpus.node("none", "a"), nil),
		*tpus.node("mislabelled", "a")) // it has GPUs
	gpus.startScheduler()

	gpus.submit("gpus", 16, inPods(8))
	tpus.submit("tpus", 8, inGroups(8))
	gpus.await("gpus", rqv1.RunRunning, "bound 16 GPUs")
	tpus.await("tpus", rqv1.RunRunning, "bound 8 GPUs")
	gpus.checkRequests("gpus", 2, gpuResource, 8)
	tpus.checkRequests("tpus", 2, tpuResource, 4)
	if nodes := tpus.nodesOf("tpus"); nodes["t0"] != 1 || nodes["t1"] != 1 {
		t.Errorf("the Run for TPUs is on %v", nodes)
	}

	tpus.submit("wide", 12, inPods(4))
	tpus.await("wide", rqv1.RunPending, "12 tpus GPUs are needed, and at most 8 fit even when the fleet is empty")
	tpus.submit("wrong", 4, func(r *rqv1.Run) {
		template(r).Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpuResource: resource.MustParse("4")}
	})
	wrong := tpus.await("wrong", rqv1.RunPending, "spec.template requests nvidia.com/gpu, but nodes of type tpus offer "+
		"google.com/tpu: request that in spec.template.spec.containers[].resources.limits")
	if r := wrong.Status.Refusal; r == nil || r.Reason != "WrongResource" || len(tpus.podsOf("wrong")) > 0 {
		t.Errorf("it is refused with %+v and has %d pods", r, len(tpus.podsOf("wrong")))
	}
	for node, why := range map[string]string{
		"both":        "it offers nvidia.com/gpu and google.com/tpu, but jobtree counts one resource on a node",
		"none":        "no GPU is allocatable",
		"mislabelled": `it offers nvidia.com/gpu, but other nodes of GPU type "tpus" offer google.com/tpu`,
	} {
		eventually(t, "an event on node "+node, func() error { return tpus.nodeTold("tpus-"+node, "LeftOut", why) })
	}
	out := mustCommand(t, c.ControlPlane, "", "runs nodes -o name")
	for _, node := range []string{"h100s-d0-0", "h100s-d0-1", "tpus-t0", "tpus-t1"} {
		if !strings.Contains(out, node) {
			t.Errorf("kubectl runs nodes does not list %s:\n%s", node, out)
		}
	}
	gpus.settled()
	tpus.settled()

	// A process that begins anew finds the same.
	if err := c.Scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	gpus.startScheduler()
	gpus.removeRun("gpus")
	gpus.submit("again", 16, inPods(8))
	gpus.await("again", rqv1.RunRunning, "bound 16 GPUs")
	gpus.checkRequests("again", 2, gpuResource, 8)
	tpus.checkRequests("tpus", 2, tpuResource, 4)
}

// TestTheTPUSample has the sample Runs for TPUs and for GPUs run side by side on the sample fleet, with the labels and
// taints that GKE gives, and the sample configuration.
func TestTheTPUSample(t *testing.T) {
	t.Parallel()
	samples, err := filepath.Abs(filepath.Join(manifests, "samples"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir(), Kwok: true, Scheduler: true,
		Fleet: filepath.Join(samples, "tpu", "fleet.yaml"), Config: filepath.Join(samples, "tpu", "config.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	mustCommand(t, c, "", fmt.Sprintf("apply -f %[1]s/namespaces.yaml -f %[1]s/tpu/budget.yaml", samples))
	mustCommand(t, c, "", fmt.Sprintf("runs submit -f %s/tpu/runs.yaml", samples))
	mustCommand(t, c, "", "runs watch -n rai slice-16 gpus-8 --until Running --timeout 60s")
	public := mustCommand(t, c, "", "get configmap -n jobtree-system jobtree-public -o jsonpath={.data} --as=nobody")
	if !strings.Contains(public, "google.com/tpu") || !strings.Contains(public, `gpus\":16`) {
		t.Errorf("everybody may read %s", public)
	}
	mustCommand(t, c, "", "runs new lost -n rai --gpus 4 --type TPU-v99 --owner org:ai:rai --wait 0")
	eventually(t, "what the fleet and the Budgets have and who waits, as metrics", func() error {
		text, err := c.Metrics(t.Context(), c.Scheduler)
		for _, line := range []string{`jobtree_budget_gpus{budget="rai",envelope="v5e-4x4",use="owned"} 16`,
			`gpu_type="TPU-v5e",state="all"} 16`,
			`jobtree_runs_waiting{date="undated",gpu_type="other",reason="UnknownGPUType"} 1`} {
			if !strings.Contains(text, line) {
				return fmt.Errorf("%v: there is no %s", err, line)
			}
		}
		return nil
	})
	for run, want := range map[string]struct{ requests, leases, places string }{
		"slice-16": {strings.Repeat(`{"google.com/tpu":"4"}`, 4), "4 4 4 4 ",
			"on tpu-a0, tpu-a1, tpu-a2, tpu-a3; paid by rai/v5e-4x4 (org:ai:rai)"},
		"gpus-8": {strings.Repeat(`{"nvidia.com/gpu":"4"}`, 2), "4 4 ", "on gpu-0; paid by rai/h100 (org:ai:rai)"},
	} {
		ofRun := " -n rai -l rq.davidlangworthy.io/run=" + run + " -o jsonpath={range.items[*]}"
		requests := mustCommand(t, c, "", "get pods"+ofRun+"{.spec.containers[0].resources.limits}{end}")
		if requests != want.requests {
			t.Errorf("pods of %s request %s", run, requests)
		}
		leased := mustCommand(t, c, "", "get leases.rq.davidlangworthy.io"+ofRun+`{.spec.slice.nodes[0].gpus}{"\x20"}{end}`)
		if leased != want.leases {
			t.Errorf("Leases of %s are for %s", run, leased)
		}
		if text := mustCommand(t, c, "", "runs explain -n rai "+run); !strings.Contains(text, want.places) {
			t.Errorf("%s is elsewhere:\n%s", run, text)
		}
	}
}
