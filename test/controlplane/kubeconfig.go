package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeconfigForUser writes a kubeconfig that authenticates as a user in groups by client certificate, and returns its
// path. The user has the rights that RBAC gives it.
func (c *ControlPlane) KubeconfigForUser(user string, groups ...string) (string, error) {
	return c.writeUserKubeconfig(c.userFile(user), user, groups...)
}

// KubeconfigForServiceAccount writes a kubeconfig that authenticates as a service account by a token that is valid for
// a year, and returns its path. The account must exist.
func (c *ControlPlane) KubeconfigForServiceAccount(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(validity / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	path := c.userFile(namespace + "-" + name)
	return path, c.writeKubeconfig(path, name, &clientcmdapi.AuthInfo{Token: answer.Status.Token})
}

// RESTConfig is a client configuration from a kubeconfig, without a client-side rate limit.
func RESTConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// userFile is where the kubeconfig of a user is kept.
func (c *ControlPlane) userFile(user string) string {
	name := strings.NewReplacer(":", "-", "/", "-").Replace(user)
	return filepath.Join(c.options.Dir, name+".kubeconfig")
}

func (c *ControlPlane) writeAdminKubeconfig() error {
	_, err := c.writeUserKubeconfig(c.Kubeconfig, "admin", "system:masters")
	if err != nil {
		return err
	}
	c.admin, err = RESTConfig(c.Kubeconfig)
	return err
}

func (c *ControlPlane) writeUserKubeconfig(path, user string, groups ...string) (string, error) {
	pair, err := c.pki.clientPair(user, groups...)
	if err != nil {
		return "", err
	}
	return path, c.writeKubeconfig(path, user, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.cert,
		ClientKeyData:         pair.key,
	})
}

func (c *ControlPlane) writeKubeconfig(path, user string, auth *clientcmdapi.AuthInfo) error {
	const cluster = "jobtree-local"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server:                   c.URL(),
		CertificateAuthorityData: c.pki.pair.cert,
	}
	config.AuthInfos[user] = auth
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return replaceFile(path, data, 0o600)
}
