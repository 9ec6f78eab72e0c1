//go:build deps

// Keeps modules in go.mod while the packages that import them are being written.
package deps

import (
	_ "github.com/google/go-cmp/cmp"
	_ "k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/component-base/cli"
	_ "k8s.io/kubectl/pkg/cmd/util"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/test/integration/scheduler_perf"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/yaml"
)
