package config

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestWhatIsAGPU: by their names, as device plugins offer them. What GPUs have beside them is none.
func TestWhatIsAGPU(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{
		"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "nvidia.com/mig-1g.10gb": true,
		"nvidia.com/mig-1g.5gb.shared": true, "nvidia.com/mig-1g.10gb.me": true, "nvidia.com/gpu-10gb": true,
		"nvidia.com/gpumem": true, "nvidia.com/vgpu": true, "nvidia.com/pgpu": true,
		"nvidia.com/hostdev": false, "nvidia.com/rdma_shared_device_a": false, "nvidia.com/roce": false,
		"amd.com/gpu": true, "amd.com/cpx_nps4": true, "amd.com/nic": false,
		"gpu.intel.com/i915": true, "gpu.intel.com/i915_monitoring": false, "habana.ai/gaudi": true,
		"google.com/tpu": true, "aws.amazon.com/neuroncore": true, "aliyun.com/gpu-mem": true,
		"volcano.sh/vgpu-number": true, "volcano.sh/gpu-memory": true, "huawei.com/Ascend910B": true,
		"vpc.amazonaws.com/efa": false, "networking.gke.io.networks/gpunic0": false, "rdma/hca": false,
		"nvidia.com/GA102GL_A10": true, "nvidia.com/TU104GL_Tesla_T4": true, "nvidia.com/NVIDIA_A10-12Q": true,
		"nvidia.com/GRID_T4-1Q": true, "nvidia.com/MT2892_Family": false,
		"deviceclass.resource.kubernetes.io/gpu.nvidia.com": true, "deviceclass.resource.kubernetes.io/mig.nvidia.com": true,
		"deviceclass.resource.kubernetes.io/nic.example.com": false, "xilinx.com/fpga-u250": false,
		"smarter-devices/fuse": false, corev1.ResourceCPU: false, "example.com/gpu": false,
	} {
		if got := InFamily(name); got != want {
			t.Errorf("%s is a GPU: %t, want %t", name, got, want)
		}
	}
}

// TestWhatNobodyCounts: the first by name of what a pod asks for anywhere, unless the configuration names it.
func TestWhatNobodyCounts(t *testing.T) {
	asks := func(names ...corev1.ResourceName) corev1.ResourceRequirements {
		out := corev1.ResourceList{}
		for _, name := range names {
			out[name] = resource.MustParse("2")
		}
		return corev1.ResourceRequirements{Limits: out}
	}
	counted := Resources{"nvidia.com/gpu", "nvidia.com/mig-1g.10gb"}
	for name, c := range map[string]struct {
		main, init corev1.ResourceRequirements
		want       string
	}{
		"CPU":                 {main: asks("cpu")},
		"whole GPUs":          {main: asks("nvidia.com/gpu", "vpc.amazonaws.com/efa")},
		"a slice that counts": {main: asks("nvidia.com/mig-1g.10gb")},
		"another slice":       {main: asks("nvidia.com/mig-2g.20gb"), want: "2 nvidia.com/mig-2g.20gb"},
		"beside a whole one":  {main: asks("nvidia.com/gpu", "nvidia.com/gpumem"), want: "2 nvidia.com/gpumem"},
		"before it begins":    {init: asks("nvidia.com/gpu.shared"), want: "2 nvidia.com/gpu.shared"},
		"of several":          {main: asks("nvidia.com/gpu.shared", "amd.com/gpu"), want: "2 amd.com/gpu"},
		"none of it": {main: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("0")}}},
	} {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: c.main}},
			InitContainers: []corev1.Container{{Resources: c.init}}}
		if got := counted.NotCounted(spec); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPartsByAnnotation: a number above zero asks for a part of a GPU, and nothing else does.
func TestPartsByAnnotation(t *testing.T) {
	for says, want := range map[[2]string]bool{
		{"gpu-fraction", "0.5"}: true, {"gpu-memory", "2000"}: true, {"runai/gpu-fraction", "1"}: true,
		{"gpu-fraction", "0"}: false, {"gpu-memory", "80Gi"}: false, {"gpu-fraction", ""}: false,
		{"gpu-fraction", "-1"}: false, {"gpu-fraction", "half"}: false, {"fraction", "0.5"}: false,
	} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{says[0]: says[1]}
		if got := PortionOf(pod); (got != "") != want {
			t.Errorf("%v: %q, want a part: %t", says, got, want)
		}
	}
}
