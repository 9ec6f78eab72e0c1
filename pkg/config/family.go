package config

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// family are the names of extended resources that are GPUs, or other accelerators that a fleet may count as such, whole
// or in parts, as their device plugins offer them: of each domain, patterns of what comes after it. Whoever is given
// one that nobody counts uses what others have paid for, or what nobody has.
var family = map[string][]string{
	"nvidia.com": {
		"*gpu*", "*GPU*", "mig-*", // whole, shared, virtual, by memory or cores, and slices
		"[AGT][ABDHKMPUV][0-9][0-9][0-9]*", "NVIDIA_*", "GRID_*", // for virtual machines
	},
	"amd.com":       {"gpu*", "?px_nps*"}, // and partitions
	"gpu.intel.com": {"i915", "xe", "tiles", "millicores", "memory.max", "sriov-*"},
	"habana.ai":     {"gaudi*"}, "google.com": {"tpu"}, "cloud-tpus.google.com": {"*"},
	"aws.amazon.com": {"neuron*"}, "k8s.amazonaws.com": {"vgpu"},
	"aliyun.com": {"gpu*"}, "tencent.com": {"vcuda-*"}, "volcano.sh": {"*gpu*", "vgpu-*"}, "4pd.io": {"vgpu*"},
	"koordinator.sh": {"gpu*"}, "elasticgpu.io": {"gpu-*", "qgpu-*"},
	"huawei.com": {"Ascend*", "npu*"}, "cambricon.com": {"*mlu*"}, "hygon.com": {"dcu*"}, "iluvatar.ai": {"*gpu*"},
	"metax-tech.com": {"*gpu*"}, "mthreads.com": {"*gpu*"}, "enflame.com": {"*gcu*"}, "kunlunxin.com": {"*xpu*"},
	"baidu.com": {"*gpu*"}, "furiosa.ai": {"*"}, "rebellions.ai": {"*"}, "tenstorrent.com": {"*"},
	"qualcomm.com":                       {"qaic*"},
	"deviceclass.resource.kubernetes.io": {"*gpu*", "mig.nvidia.com"}, // by their classes
}

// portions are annotations by which other schedulers give a pod that requests no device a part of one.
var portions = []string{
	"gpu-fraction", "gpu-memory", "runai/gpu-fraction", "sharedgpu/gpu_request", "sharedgpu/gpu_mem",
}

// InFamily reports whether a resource is a GPU, or a part of one, by its name.
func InFamily(resource corev1.ResourceName) bool {
	domain, name, _ := strings.Cut(string(resource), "/")
	return slices.ContainsFunc(family[domain], func(pattern string) bool {
		matches, err := path.Match(pattern, name)
		return err == nil && matches
	})
}

// NotCounted returns what a pod of a spec requests that is a GPU, or a part of one, and that nobody counts, the first
// by name; empty where it requests none.
func (r Resources) NotCounted(spec *corev1.PodSpec) string {
	first := ""
	look := func(list corev1.ResourceList) {
		for name := range list {
			if (first == "" || string(name) < first) && !r.Counts(name) && InFamily(name) &&
				rank.PodGPUs(spec, string(name)) > 0 {
				first = string(name)
			}
		}
	}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			look(containers[i].Resources.Requests)
			look(containers[i].Resources.Limits)
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%d %s", rank.PodGPUs(spec, first), first)
}

// PortionOf returns by which annotation a pod asks for a part of a GPU, with what it says; empty where it does not. Who
// hands out parts reads a plain number: anything else, and nothing, is a remark.
func PortionOf(pod *corev1.Pod) string {
	for _, key := range portions {
		part := pod.Annotations[key]
		if n, err := strconv.ParseFloat(part, 64); err == nil && n > 0 {
			return fmt.Sprintf("annotation %s: %q", key, part)
		}
	}
	return ""
}
