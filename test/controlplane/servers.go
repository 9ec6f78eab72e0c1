package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
)

// serviceRange is the range of Service addresses; nothing routes them.
const serviceRange = "10.96.0.0/16"

// firstServiceIP is the address of the Service "kubernetes".
var firstServiceIP = net.IPv4(10, 96, 0, 1)

// startTimeout bounds each wait for one part of the control plane.
const startTimeout = 2 * time.Minute

// URL is the address of the API server.
func (c *ControlPlane) URL() string { return "https://" + c.address }

// startServers starts etcd and the API server and waits until the latter answers.
func (c *ControlPlane) startServers(ctx context.Context) (err error) {
	if c.Etcd, err = c.etcd(); err != nil {
		return err
	}
	if c.APIServer, err = c.apiServer(); err != nil {
		return err
	}
	if err := c.Etcd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// The API server gives up on an etcd that is not there soon.
	if err := c.Etcd.WaitUntil(ctx, c.etcdReady); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// StartAPIServer starts the API server, again after a Kill or Stop, on the same port and data, and waits until it is
// ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := c.APIServer.Start(); err != nil {
		return err
	}
	return c.APIServer.WaitUntil(ctx, func(ctx context.Context) error { return readyz(ctx, c.client) })
}

func readyz(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func (c *ControlPlane) etcdReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.etcdAddress+"/health", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s", response.Status)
	}
	return nil
}

func (c *ControlPlane) etcd() (*Process, error) {
	url := "http://" + c.etcdAddress
	return c.process("etcd", "etcd",
		"--data-dir="+filepath.Join(c.options.Dir, "etcd"),
		"--listen-client-urls="+url,
		"--advertise-client-urls="+url,
		"--listen-peer-urls=http://127.0.0.1:0", // a cluster of one has no peers
		"--unsafe-no-fsync",                     // a crash of the machine may lose data; a crash of etcd does not
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	)
}

func (c *ControlPlane) apiServer() (*Process, error) {
	audit, err := c.auditFlags()
	if err != nil {
		return nil, err
	}
	return c.process("kube-apiserver", "kube-apiserver", append(append(audit, c.serving()...),
		"--etcd-servers=http://"+c.etcdAddress,
		"--bind-address=127.0.0.1",
		"--secure-port="+portOf(c.address),
		"--tls-cert-file="+c.pki.file("apiserver.crt"),
		"--tls-private-key-file="+c.pki.file("apiserver.key"),
		"--client-ca-file="+c.pki.file("ca.crt"),
		"--requestheader-client-ca-file="+c.pki.file("ca.crt"),
		"--requestheader-allowed-names=front-proxy-client", // nobody: there is no aggregated API server
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+c.pki.file("service-accounts.key"),
		"--service-account-signing-key-file="+c.pki.file("service-accounts.key"),
		"--service-cluster-ip-range="+serviceRange,
		"--authorization-mode=RBAC",
		"--endpoint-reconciler-type=none", // an Endpoints object may not hold a loopback address
		"--allow-privileged",
	)...)
}
