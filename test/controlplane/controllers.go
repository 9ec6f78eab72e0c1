package controlplane

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startControllers starts kube-controller-manager and, if asked for, kwok.
func (c *ControlPlane) startControllers(ctx context.Context) (err error) {
	if c.ControllerManager, err = c.controlsProcess(); err != nil {
		return err
	}
	if err := c.ControllerManager.Start(); err != nil {
		return err
	}
	if c.options.Kwok {
		if c.Kwok, err = c.kwok(); err != nil {
			return err
		}
		if err := c.boundKwok(ctx); err != nil {
			return err
		}
		if err := c.StartKwok(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.ControllerManager.WaitUntil(ctx, c.served)
}

// served is an error until every namespace has what the controllers make in each.
func (c *ControlPlane) served(ctx context.Context) error {
	namespaces, err := c.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range namespaces.Items {
		accounts := c.client.CoreV1().ServiceAccounts(namespaces.Items[i].Name)
		if _, err := accounts.Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// controllers are those that kube-controller-manager runs: all but those that write with every pod that comes and goes
// what EndpointSlices have too, and with every node or namespace what no kubelet of kwok's reads: for how long it may
// keep what it has read, and whom a pod's containers are to trust.
const controllers = "*,-endpoints-controller,-endpointslice-mirroring-controller,-ttl-controller," +
	"-root-ca-certificate-publisher-controller"

func (c *ControlPlane) controlsProcess() (*Process, error) {
	kubeconfig, err := c.KubeconfigForUser("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return c.process("kube-controller-manager", "kube-controller-manager", append(c.controlling(),
		"--kubeconfig="+kubeconfig,
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.pki.file("service-accounts.key"),
		"--root-ca-file="+c.pki.file("ca.crt"),
		"--leader-elect=false", // there is one, and it must take over at once after a crash
		"--secure-port=0",
		"--controllers="+controllers,
		"--node-monitor-grace-period=5m", // a machine that is busy may keep kwok from renewing its nodes' leases
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)...)
}
