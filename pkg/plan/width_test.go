package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// elastic is a Run of 32 GPUs in pods of 4, which may shrink to 8 by steps of 8, with a spare pod in every group.
func elastic(grouped bool) *rqv1.RunSpec {
	spec := &rqv1.RunSpec{
		Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 32, GPUsPerPod: ptr(int32(4))},
		Spares:    ptr(int32(4)),
		Malleable: &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: 64, StepGPUs: 8},
	}
	if grouped {
		spec.Locality = &rqv1.RunLocality{GroupGPUs: ptr(int32(8))}
	}
	return spec
}

func TestDemandAtAnotherWidth(t *testing.T) {
	for name, test := range map[string]struct {
		grouped bool
		pods    int
		want    string
	}{
		"fewer groups":      {true, 4, "2 groups of 2 pods and 1 spares"},
		"more groups":       {true, 16, "8 groups of 2 pods and 1 spares"},
		"as it is":          {true, 8, "4 groups of 2 pods and 1 spares"},
		"fewer pods in one": {false, 2, "1 groups of 2 pods and 1 spares"},
		"more pods in one":  {false, 12, "1 groups of 12 pods and 1 spares"},
	} {
		d, refusal := DemandOf(elastic(test.grouped), 0, manyOf(8), nil)
		if refusal != nil {
			t.Fatal(refusal)
		}
		at := d.At(test.pods)
		if got := fmt.Sprintf("%d groups of %d pods and %d spares", at.Groups, at.PodsPerGroup,
			at.SparesPerGroup); got != test.want || at.Pods() != test.pods {
			t.Errorf("%s: %s, %d pods in all, want %s", name, got, at.Pods(), test.want)
		}
		if diff := cmp.Diff(d, at.At(d.Pods())); diff != "" {
			t.Errorf("%s and back (-want +got):\n%s", name, diff)
		}
		if least := d.Least(); least.Pods() != 2 {
			t.Errorf("%s: the least width has %d pods, want 2", name, least.Pods())
		}
	}
	fixed := &rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 32}}
	if d, _ := DemandOf(fixed, 0, manyOf(8), nil); d.Least() != d {
		t.Errorf("a fixed Run has a lesser width: %+v", d.Least())
	}
}

// A Run whose size nobody knows, such as before there are nodes, has no pods at any width.
func TestNoSize(t *testing.T) {
	spec := elastic(true)
	spec.Resources.GPUsPerPod = nil
	d, refusal := DemandOf(spec, 0, manyOf(0), nil)
	if refusal == nil || d.Least().HeldGPUs() != 0 || d.At(8).Pods() != 0 {
		t.Errorf("it is refused with %v and has shape %+v, at its least %+v", refusal, d, d.Least())
	}
}

func TestAtop(t *testing.T) {
	d, _ := DemandOf(elastic(true), 0, manyOf(8), nil)
	for placed, want := range map[int]int{0: 2, 1: 2, 2: 2, 3: 4, 4: 4, 5: 6, 7: 8, 8: 8} {
		if got := d.Atop(placed); got != want {
			t.Errorf("the narrowest width with room for %d pods is %d, want %d", placed, got, want)
		}
	}
}

func TestWidest(t *testing.T) {
	d, _ := DemandOf(elastic(true), 0, manyOf(8), nil) // 2, 4, 6 or 8 pods
	for name, test := range map[string]struct {
		least, most, room, want int
		tried                   []int
	}{
		"the total is tried first":          {2, 8, 8, 8, []int{8}},
		"then the least":                    {2, 8, 1, 0, []int{8, 2}},
		"then what is between":              {2, 8, 7, 6, []int{8, 2, 4, 6}},
		"down to the least":                 {2, 8, 3, 2, []int{8, 2, 4}},
		"what cannot fit is not tried":      {2, 5, 5, 4, []int{2, 4}},
		"nor is anything but the least":     {2, 1, 1, 0, []int{2}},
		"what is placed needs no room":      {4, 2, 4, 4, []int{4}},
		"one width is tried once":           {8, 8, 4, 0, []int{8}},
		"also when there is no room for it": {8, 0, 4, 0, []int{8}},
	} {
		var tried []int
		width, found, refusal := d.Widest(test.least, test.most, func(width int) ([]Assignment, *Refusal) {
			tried = append(tried, width)
			if width > test.room {
				return nil, &Refusal{WantedGPUs: width}
			}
			return make([]Assignment, width), nil
		})
		if diff := cmp.Diff(test.tried, tried); diff != "" {
			t.Errorf("%s: tried (-want +got):\n%s", name, diff)
		}
		switch {
		case test.want == 0 && (refusal == nil || refusal.WantedGPUs != test.least):
			t.Errorf("%s: refusal %+v, want that of the least width", name, refusal)
		case test.want > 0 && (width != test.want || len(found) != test.want || refusal != nil):
			t.Errorf("%s: %d with a plan for %d and refusal %v, want %d", name, width, len(found), refusal, test.want)
		}
	}
}

// TestHolding: a Run that may be wide asks for no more than there is, and for no less than it needs.
func TestHolding(t *testing.T) {
	for name, test := range map[string]struct {
		grouped    bool
		gpus, pods int
		want       int // pods
	}{
		"all of it":                      {true, 48, 0, 8},
		"a group and its spare less":     {true, 47, 0, 6},
		"the least":                      {true, 12, 0, 2},
		"less than the least":            {true, 11, 0, 2},
		"nothing":                        {false, 0, 0, 2},
		"one spare for all":              {false, 35, 0, 6},
		"pods that exist are not beyond": {true, 0, 5, 6},
	} {
		d, refusal := DemandOf(elastic(test.grouped), 0, manyOf(8), nil)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if got := d.Holding(test.gpus, test.pods); got != d.At(test.want) {
			t.Errorf("%s: %+v, want %d pods", name, got, test.want)
		}
	}
	fixed, _ := DemandOf(&rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 32}}, 0,
		manyOf(8), nil)
	if got := fixed.Holding(8, 0); got != fixed {
		t.Errorf("a fixed Run has one width, not %+v", got)
	}
}
