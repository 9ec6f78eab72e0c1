package controlplane

import (
	"context"
	_ "embed"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed kwok.yaml
var kwokConfig []byte

// startControllers starts kube-controller-manager and, if asked for, kwok.
func (c *ControlPlane) startControllers(ctx context.Context) (err error) {
	if c.ControllerManager, err = c.controllerManager(); err != nil {
		return err
	}
	if err := c.ControllerManager.Start(); err != nil {
		return err
	}
	if c.options.Kwok {
		if c.Kwok, err = c.kwok(); err != nil {
			return err
		}
		if err := c.StartKwok(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.ControllerManager.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// StartKwok starts kwok, again after a Kill or Stop. A running one is left alone.
func (c *ControlPlane) StartKwok(ctx context.Context) error {
	if c.Kwok.Running() {
		return nil
	}
	// A kwok takes no node whose lease another one holds, dead or not, until the lease expires.
	leases := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if err := leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return c.Kwok.Start()
}

func (c *ControlPlane) controllerManager() (*Process, error) {
	kubeconfig, err := c.KubeconfigForUser("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return c.process("kube-controller-manager", "kube-controller-manager",
		"--kubeconfig="+kubeconfig,
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.pki.file("service-accounts.key"),
		"--root-ca-file="+c.pki.file("ca.crt"),
		"--leader-elect=false", // there is one, and it must take over at once after a crash
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

// kwok runs with all rights, as the many kubelets do that it stands in for.
func (c *ControlPlane) kwok() (*Process, error) {
	kubeconfig, err := c.KubeconfigForUser("kwok", "system:masters")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.options.Dir, "kwok.yaml")
	if err := replaceFile(config, kwokConfig, 0o644); err != nil {
		return nil, err
	}
	return c.process("kwok", "kwok", "--kubeconfig="+kubeconfig, "--config="+config, "--v=WARN")
}
