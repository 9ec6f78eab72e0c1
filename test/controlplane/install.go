package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
)

// installed are the kustomizations that a local control plane takes from manifests/: all but the scheduler's Deployment
// and its ConfigMap, in whose place the scheduler runs as a process here, under the same service account.
var installed = []string{"crd", "rbac", "policy"}

// install applies the manifests as the administrator.
func (c *ControlPlane) install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, part := range installed {
		dir := filepath.Join(c.root, "manifests", part)
		if _, stderr, err := c.Kubectl(ctx, "apply", "--server-side", "-k", dir); err != nil {
			return fmt.Errorf("applying %s: %w: %s", dir, err, stderr)
		}
	}
	_, stderr, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	if err != nil {
		return fmt.Errorf("waiting for the CustomResourceDefinitions: %w: %s", err, stderr)
	}
	return nil
}
