package plugins

import (
	"os"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// TestMain registers kube-scheduler's metrics, which its queue and framework count in.
func TestMain(m *testing.M) {
	metrics.Register()
	os.Exit(m.Run())
}
