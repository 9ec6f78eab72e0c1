package controlplane

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
)

// coschedulingKind is the CustomResourceDefinition of the PodGroups of the coscheduling plugin, as its release has it,
// which tools/coscheduling holds it to.
//
//go:embed podgroups.yaml
var coschedulingKind []byte

// What the API server, and with it the controllers, need to serve the native PodGroup with all its fields.
const (
	podGroupGates  = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
	podGroupServed = "--runtime-config=scheduling.k8s.io/v1beta1=true"
)

// serving returns the API server's flags for the kinds that are asked for.
func (c *ControlPlane) serving() []string {
	if !c.options.PodGroups {
		return nil
	}
	return []string{podGroupGates, podGroupServed}
}

// controlling returns the flags of kube-controller-manager for the kinds that are asked for: a PodGroup that nobody
// controls can be made, and never goes.
func (c *ControlPlane) controlling() []string {
	if !c.options.PodGroups {
		return nil
	}
	return []string{podGroupGates}
}

// installPodGroups installs the kind of the coscheduling plugin, if it is asked for. It is not waited for: install
// waits for all kinds.
func (c *ControlPlane) installPodGroups(ctx context.Context) error {
	if !c.options.PodGroups {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, stderr, err := c.KubectlStdin(ctx, bytes.NewReader(coschedulingKind), "apply", "--server-side", "-f", "-")
	if err != nil {
		return fmt.Errorf("applying the kind of coscheduling PodGroups: %w: %s", err, stderr)
	}
	return nil
}
