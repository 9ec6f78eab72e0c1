package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestOneResourceOrAList(t *testing.T) {
	for raw, want := range map[string]Resources{
		"":                                {"nvidia.com/gpu"},
		"gpuResource:":                    {"nvidia.com/gpu"},
		`gpuResource: ""`:                 {"nvidia.com/gpu"},
		"gpuResource: google.com/tpu":     {"google.com/tpu"},
		"gpuResource: [google.com/tpu]":   {"google.com/tpu"},
		"gpuResource: [b.org/b, a.org/a]": {"b.org/b", "a.org/a"},
	} {
		args, err := Parse([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if diff := cmp.Diff(want, args.GPUResource); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		} else if again, err := Parse([]byte(`{"gpuResource":` + written(t, want) + "}")); err != nil ||
			!cmp.Equal(args, again) {
			t.Errorf("%s is written and read as %v: %v", raw, again, err)
		}
	}
}

// written is how resources are written: one as it was named.
func written(t *testing.T, r Resources) string {
	text, err := json.Marshal(r)
	if one := len(r) == 1 && text[0] == '"'; err != nil || one != (len(r) == 1) {
		t.Errorf("%v is written as %s: %v", []string(r), text, err)
	}
	return string(text)
}

// A node has one of the resources, whether its devices are well or not, and of several none.
func TestTheResourceOfANode(t *testing.T) {
	counted := Resources{"nvidia.com/gpu", "google.com/tpu"}
	for name, test := range map[string]struct {
		capacity, allocatable map[corev1.ResourceName]string
		on                    string
		sum                   int
	}{
		"none": {nil, map[corev1.ResourceName]string{"cpu": "8"}, "", 0},
		"one":  {nil, map[corev1.ResourceName]string{"google.com/tpu": "4"}, "google.com/tpu", 4},
		"one and zero": {nil, map[corev1.ResourceName]string{"google.com/tpu": "4", "nvidia.com/gpu": "0"},
			"google.com/tpu", 4},
		"all are ill": {map[corev1.ResourceName]string{"google.com/tpu": "4"}, nil, "google.com/tpu", 0},
		"both": {nil, map[corev1.ResourceName]string{"google.com/tpu": "4", "nvidia.com/gpu": "8"},
			"nvidia.com/gpu and google.com/tpu", 12},
		"both, one ill": {map[corev1.ResourceName]string{"google.com/tpu": "4"},
			map[corev1.ResourceName]string{"nvidia.com/gpu": "8"}, "nvidia.com/gpu and google.com/tpu", 8},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Capacity: list(test.capacity), Allocatable: list(test.allocatable)}}
		if on, sum := counted.On(node), counted.Sum(node.Status.Allocatable); on != test.on || sum != test.sum {
			t.Errorf("%s: it has %d of %q, not %d of %q", name, sum, on, test.sum, test.on)
		}
	}
}

func list(of map[corev1.ResourceName]string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range of {
		out[name] = resource.MustParse(quantity)
	}
	return out
}
