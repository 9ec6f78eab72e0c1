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
