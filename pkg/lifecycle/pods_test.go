package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// A Run that was there before admission refused it may have a template that says what only the scheduler says.
func TestATemplateSaysNothingForTheScheduler(t *testing.T) {
	d := Decide(scene(func(o *Observed) {
		o.Run.Spec.Template = &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{"app": "train", rqv1.LabelRole: "Spare", rqv1.GroupName + "/other": "x"},
				Annotations: map[string]string{"note": "mine", rqv1.AnnotationReplaces: `{"spareUID":"a","node":"n1"}`,
					rqv1.AnnotationOwner: "org:b"},
			},
			Spec: corev1.PodSpec{
				Containers:      []corev1.Container{{Name: "main", Image: "train"}},
				SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/wait"}},
			},
		}
		o.Demand.SparesPerGroup = 1
	}))
	for _, pod := range d.Create {
		spare := pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)
		if spare != (pod.Labels[rqv1.LabelEpoch] == "") || pod.Labels[rqv1.GroupName+"/other"] != "" ||
			len(pod.Spec.SchedulingGates) > 0 {
			t.Errorf("pod %s has labels %v and gates %v", pod.Name, pod.Labels, pod.Spec.SchedulingGates)
		}
		want := map[string]string{"note": "mine"}
		if spare {
			want = nil
		}
		if diff := cmp.Diff(want, pod.Annotations); diff != "" {
			t.Errorf("annotations of pod %s (-want +got):\n%s", pod.Name, diff)
		}
	}
	if len(d.Create) != 6 {
		t.Errorf("%d pods are made, want 4 and 2 spares", len(d.Create))
	}
}

// A Run without a template starts where the strictest pod security standard is enforced.
func TestThePauseContainerHasTheLeastPrivilege(t *testing.T) {
	for _, pod := range Decide(scene(nil)).Create {
		if diff := cmp.Diff(leastPrivilege(), pod.Spec.Containers[0].SecurityContext); diff != "" {
			t.Errorf("pod %s (-want +got):\n%s", pod.Name, diff)
		}
	}
}

// TestALeaseThatIsToldLateEndsWithItsSuccessor has the ledger tell, after a failover, of a Lease for a pod that is gone
// and replaced.
func TestALeaseThatIsToldLateEndsWithItsSuccessor(t *testing.T) {
	o := scene(func(o *Observed) {
		started(o)
		o.pods("n0", "n1", "n2", "n3")
		late := o.Leases[2].DeepCopy()
		late.Name, late.Labels[rqv1.LabelPodUID] = "late", "a pod that is gone"
		late.Spec.Start.Time = o.Leases[2].Spec.Start.Add(-time.Second)
		o.Leases = append(o.Leases, late)
	})
	closings := Decide(o).Close
	if len(closings) != 1 || closings[0].Lease.Name != "late" || closings[0].Reason != rqv1.ClosedUnwound ||
		!closings[0].Ended.Equal(o.Leases[2].Spec.Start.Time) {
		t.Errorf("it ends so: %+v", closings)
	}
}

// Nobody else is to end the pods of a node that may be lost: ranks and spares stay until its loss is recorded.
func TestPodsOutlastTheTaintsOfLostNodes(t *testing.T) {
	five := int64(300)
	own := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists},
		{Operator: corev1.TolerationOpExists, TolerationSeconds: &five}, {Key: corev1.TaintNodeUnreachable,
			Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &five}}
	o := scene(func(o *Observed) {
		o.Demand.SparesPerGroup = 1
		o.Run.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: own}}
	})
	var taints []corev1.Taint
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeOutOfService} {
		taints = append(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	for _, pod := range Decide(o).Create {
		tolerated, used := v1helper.GetMatchingTolerations(klog.Background(), taints, pod.Spec.Tolerations)
		for i := range used {
			if used[i].TolerationSeconds != nil {
				t.Errorf("pod %s is ended by %+v", pod.Name, used[i])
			}
		}
		if !tolerated || len(pod.Spec.Tolerations) != len(own)+len(taints) {
			t.Errorf("pod %s tolerates %+v", pod.Name, pod.Spec.Tolerations)
		}
	}
	if n := len(o.Run.Spec.Template.Spec.Tolerations); n != len(own) {
		t.Errorf("the template has %d tolerations", n)
	}
}

// TestARunOfOnePodHasNoService: only pods that others look for have a name that a Service gives them.
func TestARunOfOnePodHasNoService(t *testing.T) {
	width := func(most int32) *rqv1.RunMalleable {
		return &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: most, StepGPUs: 8}
	}
	eight, two := int32(8), int32(2)
	for name, c := range map[string]struct {
		spec    rqv1.RunSpec
		service bool
	}{
		"one pod":               {spec: rqv1.RunSpec{}},
		"that cannot grow":      {spec: rqv1.RunSpec{Malleable: width(8)}},
		"that may grow":         {spec: rqv1.RunSpec{Malleable: width(16)}, service: true},
		"and a spare":           {spec: rqv1.RunSpec{SparesPerGroup: &eight}, service: true},
		"four pods in one node": {spec: rqv1.RunSpec{Resources: rqv1.RunResources{GPUsPerPod: &two}}, service: true},
	} {
		o := scene(func(o *Observed) {
			spec := c.spec
			spec.Owner = o.Run.Spec.Owner
			spec.Resources.GPUType, spec.Resources.TotalGPUs = o.Run.Spec.Resources.GPUType, 8
			o.Run.Spec = spec
			o.Demand, o.Shape = plan.DemandOf(&spec, 0, topology.NewBlocks(map[int]int{8: 64}), nil)
		})
		d := Decide(o)
		if len(d.Create) == 0 {
			t.Fatalf("%s: no pods are made", name)
		}
		subdomain, address := "", "localhost"
		if c.service {
			subdomain, address = "run", "run-0.run"
		}
		pod := d.Create[0]
		got := map[string]string{"subdomain": pod.Spec.Subdomain, "hostname": pod.Spec.Hostname}
		for _, v := range pod.Spec.Containers[0].Env {
			if strings.Contains(v.Name, "ADDR") || strings.Contains(v.Name, "ENDPOINT") {
				got[v.Name] = v.Value
			}
		}
		want := map[string]string{"subdomain": subdomain, "hostname": "run-0", "MASTER_ADDR": address,
			"PET_MASTER_ADDR": address, "PET_RDZV_ENDPOINT": address + ":29500"}
		if diff := cmp.Diff(want, got); diff != "" || (d.Service != nil) != c.service {
			t.Errorf("%s: a Service %v; (-want +got):\n%s", name, d.Service != nil, diff)
		}
	}
}
