package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// Metrics returns what a process serves at /metrics, in Prometheus' text format, as the administrator may read it. A
// process that is stopped never answers: ctx should have a deadline.
func (c *ControlPlane) Metrics(ctx context.Context, of *Process) (string, error) {
	config, err := rest.TLSConfigFor(c.AdminConfig())
	if err != nil {
		return "", err
	}
	scheduler := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		Certificates: config.Certificates, GetClientCertificate: config.GetClientCertificate,
		InsecureSkipVerify: true, // the scheduler's own certificate is self-signed
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+of.Address+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := scheduler.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
