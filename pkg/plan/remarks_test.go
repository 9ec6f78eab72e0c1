package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Shapes that leave parts of nodes unused are told with amounts that would fill nodes.
func TestWhatAShapeLeavesOver(t *testing.T) {
	spec := func(total, group, perPod int32) *rqv1.RunSpec {
		s := &rqv1.RunSpec{Resources: rqv1.RunResources{TotalGPUs: total, GPUType: "H100"}}
		if group > 0 {
			s.Locality = &rqv1.RunLocality{GroupGPUs: &group}
		}
		if perPod > 0 {
			s.Resources.GPUsPerPod = &perPod
		}
		return s
	}
	for name, test := range map[string]struct {
		spec *rqv1.RunSpec
		want string
	}{
		"pods that fill nodes": {spec(24, 0, 0), ""},
		"pods that halve them": {spec(20, 0, 4), ""},
		"pods of one GPU":      {spec(17, 0, 0), ""},
		"a single pod":         {spec(5, 0, 0), ""},
		"a total that no node divides": {spec(20, 0, 0),
			"20 GPUs make 4 pods of 5; 3 GPUs of each node of 8 stay unused; 16 or 24 would fill nodes"},
		"less than a node": {spec(6, 0, 3), "6 GPUs make 2 pods of 3; 2 GPUs of each node of 8 stay unused; pods of a size " +
			"that divides 8 would fill nodes"},
		"groups": {spec(24, 12, 0), "groups of 12 GPUs make 2 pods of 6; 2 GPUs of each node of 8 stay unused; 8 or 16 " +
			"would fill nodes"},
		"pods larger than a node": {spec(32, 0, 16), ""},
	} {
		d, refusal := DemandOf(test.spec, 0, manyOf(8), nil)
		if refusal != nil {
			t.Errorf("%s: %v", name, refusal)
			continue
		}
		if diff := cmp.Diff(test.want, strings.Join(Remarks(test.spec, 0, d, manyOf(8)), "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatSparesComeTo tells of spares that are no whole pods what they are rounded up to, and of those that replace
// less than a node how many would.
func TestWhatSparesComeTo(t *testing.T) {
	const each, pays = "a spare replaces a whole pod, here of ", ", which are paid for as ranks are, at the rate of spares"
	for name, test := range map[string]struct {
		perPod, spares, groups int32
		template               int
		want                   string
	}{
		"none":            {0, 0, 1, 0, ""},
		"whole pods":      {0, 8, 1, 0, ""},
		"a part of a pod": {0, 1, 1, 0, each + "8 GPUs: spares of 1 are rounded up to 8" + pays},
		"a part, in groups": {0, 9, 2, 0, each + "8 GPUs: spares of 9 are rounded up to 16 in each of 2 groups, " +
			"32 in all, which are paid for as ranks are, at the rate of spares"},
		"a part of a template": {0, 3, 1, 8, each + "8 GPUs: spares of 3 are rounded up to 8" + pays},
		"less than a node": {4, 4, 1, 0, "a lost node of 8 GPUs may take 2 pods of 4 with it, and the spares of a group " +
			"replace 1: 8 spare GPUs a group would replace them"},
		"less than a node, by a template": {0, 1, 1, 2, each + "2 GPUs: spares of 1 are rounded up to 2" + pays +
			"; a lost node of 8 GPUs may take 4 pods of 2 with it, and the spares of a group replace 1: 8 " +
			"spare GPUs a group would replace them"},
	} {
		group := 32 / test.groups
		spec := &rqv1.RunSpec{Resources: rqv1.RunResources{TotalGPUs: 32, GPUType: "H100"}, Spares: &test.spares,
			Locality: &rqv1.RunLocality{GroupGPUs: &group}}
		if test.perPod > 0 {
			spec.Resources.GPUsPerPod = &test.perPod
		}
		d, refusal := DemandOf(spec, test.template, manyOf(8), nil)
		if refusal != nil {
			t.Fatalf("%s: %v", name, refusal)
		}
		if diff := cmp.Diff(test.want, strings.Join(Remarks(spec, test.template, d, manyOf(8)), "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
